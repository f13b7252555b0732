"""A typed HTTP client of the ledger API, for threads and for asyncio."""

from gpuledger.client.changes import Order
from gpuledger.client.ledger import AsyncLedgerClient, LedgerClient

__all__ = ["AsyncLedgerClient", "LedgerClient", "Order"]
