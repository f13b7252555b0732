"""Budgets, fair shares and an append-only ledger of GPU time."""
