"""Streams on Kafka; the only package that knows the client.

Readers belong to no consumer group and commit nothing to the broker: their positions live in the
ledger's transaction, and they say where they start.
"""

from gpuledger.streams.kafka.broker import KafkaBroker
from gpuledger.streams.kafka.security import Security

__all__ = ["KafkaBroker", "Security"]
