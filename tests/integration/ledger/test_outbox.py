"""Messages wait in the transaction that caused them, and leave in order."""

from contextlib import suppress

from tests.integration.ledger.books import NOON, Ledger

from gpuledger.database.engine import writing
from gpuledger.ledger.outbox import enqueue, mark_published, waiting


def queue(ledger: Ledger, *values: bytes) -> None:
    with writing(ledger.engine) as writer:
        for value in values:
            enqueue(writer, "gpu.allocations", "alpha", value)


def test_messages_wait_in_order_until_they_are_out(ledger: Ledger) -> None:
    queue(ledger, b"1", b"2", b"3")
    with writing(ledger.engine) as writer:
        queued = waiting(writer, limit=2)
        assert [(item.topic, item.key, item.value) for item in queued] == [
            ("gpu.allocations", "alpha", b"1"),
            ("gpu.allocations", "alpha", b"2"),
        ]
        mark_published(writer, [item.id for item in queued], NOON)
        assert [item.value for item in waiting(writer, limit=9)] == [b"3"]


def test_what_was_taken_back_never_leaves(ledger: Ledger) -> None:
    with suppress(ZeroDivisionError), writing(ledger.engine) as writer:
        enqueue(writer, "gpu.allocations", "alpha", b"1")
        raise ZeroDivisionError
    with writing(ledger.engine) as writer:
        assert waiting(writer, limit=9) == []
