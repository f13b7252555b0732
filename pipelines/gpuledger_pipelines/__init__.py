"""Dagster pipelines that roll the ledger up into the warehouse."""
