"""The ledger API: what the book and the warehouse know, over HTTP, read only so far."""
