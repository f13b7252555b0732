"""The ledger against a scheduler's own record: every difference has a cause, or is shown as one that has none."""
