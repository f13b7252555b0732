"""The sealed close of a budget period: its steps as a job, its gate, its schedule."""
