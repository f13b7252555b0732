"""The agent on a host: measures its devices and tells the ledger, whatever happens to driver and broker."""
