"""A typed HTTP client of the ledger API."""

from gpuledger.client.ledger import LedgerClient

__all__ = ["LedgerClient"]
