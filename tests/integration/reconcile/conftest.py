"""The ledger, the clock and the commands that collectors are tested with."""

from tests.integration.collect import conftest as collecting

engine = collecting.engine
clock = collecting.clock
intake = collecting.intake
commands = collecting.commands
