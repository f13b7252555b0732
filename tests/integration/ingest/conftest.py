"""The ledgers that commands work on."""

from tests.commands import fixtures

ledger = fixtures.ledger
own_home = fixtures.own_home
traces = fixtures.traces
