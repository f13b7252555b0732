"""Streams on Kafka; the only package that knows the client.

Readers commit nothing to the broker: their positions live in the ledger's transaction, and they say where they
start. A consumer group only tells the workers that share a topic who reads which partition.
"""

from gpuledger.streams.kafka.broker import KafkaBroker
from gpuledger.streams.kafka.security import Security

__all__ = ["KafkaBroker", "Security"]
