"""Poll, validate, append: one transaction per batch and book."""
