"""The ledgers that commands work on."""

from tests.brokers import fixtures as brokers
from tests.commands import fixtures

empty_kafka = brokers.empty_kafka
kafka_bootstrap = brokers.kafka_bootstrap
ledger = fixtures.ledger
own_home = fixtures.own_home
traces = fixtures.traces
