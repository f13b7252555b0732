"""A typed HTTP client of the ledger API."""

from gpuledger.client.ledger import LedgerClient, Order

__all__ = ["LedgerClient", "Order"]
