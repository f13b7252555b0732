"""Budget versus actual, by period."""
