"""A month of a ledger, simulated again: what the journal tells of it, as a scenario and as facts."""
