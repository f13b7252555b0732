"""The ledger that the month is told to."""

from tests.commands import fixtures

ledger = fixtures.ledger
