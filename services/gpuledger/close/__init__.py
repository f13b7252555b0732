"""The sealed close of a budget period: its steps, its file, and what is checked of both."""
