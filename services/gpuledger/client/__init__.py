"""A typed HTTP client of the ledger API."""
