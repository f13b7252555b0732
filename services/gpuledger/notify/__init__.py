"""Notifications: which ones follow from the books, each with an id of its own, and how they reach people once."""
