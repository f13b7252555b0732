"""The ledger API."""
