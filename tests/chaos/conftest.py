"""Brokers that survive, and ledgers that are attacked."""

from tests.brokers import fixtures as brokers
from tests.commands import fixtures

apache_kafka = brokers.apache_kafka
killable_kafka = brokers.killable_kafka
ledger = fixtures.ledger
own_home = fixtures.own_home
