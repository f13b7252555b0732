"""The outbox: what was committed is published, in order, at least once, and what was not is not."""

from collections.abc import Iterable

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import writing
from gpuledger.ingest import relay as module
from gpuledger.ingest.relay import relay
from gpuledger.kernel.clock import SystemClock
from gpuledger.kernel.errors import Unavailable
from gpuledger.ledger.copying import driver
from gpuledger.streams.files import FileBroker, FilePublisher
from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import ALLOCATIONS, DEAD_LETTERS, Topic


def queue(engine: sa.Engine, topic: Topic, values: Iterable[bytes]) -> None:
    with writing(engine) as writer:
        for value in values:
            driver(writer).execute(
                "INSERT INTO ledger.outbox (topic, key, value) VALUES (%s, 'alpha', %s)", (topic, value)
            )


def published(broker: FileBroker, topic: Topic) -> list[bytes]:
    return broker.path(topic, 0).read_bytes().splitlines()


def waiting(engine: sa.Engine) -> int:
    with engine.connect() as connection:
        found: int = connection.exec_driver_sql(
            "SELECT count(*) FROM ledger.outbox WHERE published_at IS NULL"
        ).scalar_one()
        return found


def test_everything_is_published_in_order_and_once(
    engine: sa.Engine, broker: FileBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    values = [b"%d" % n for n in range(5)]
    queue(engine, ALLOCATIONS, values)
    queue(engine, DEAD_LETTERS, [b"letter"])

    assert relay(engine, broker, SystemClock()) == 6
    assert relay(engine, broker, SystemClock()) == 0

    assert published(broker, ALLOCATIONS) == values
    assert published(broker, DEAD_LETTERS) == [b"letter"]
    assert waiting(engine) == 0


def test_an_empty_outbox_needs_no_topic(engine: sa.Engine, broker: FileBroker) -> None:
    assert relay(engine, broker, SystemClock()) == 0
    assert not broker.path(ALLOCATIONS, 0).exists()


def test_what_could_not_be_published_waits(
    engine: sa.Engine, broker: FileBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue(engine, ALLOCATIONS, [b"one"])

    def fail(*_: object) -> None:
        raise Unavailable("the broker went away")

    with monkeypatch.context() as patch:
        patch.setattr(FilePublisher, "flush", fail)
        with pytest.raises(Unavailable, match="went away"):
            relay(engine, broker, SystemClock())
    assert waiting(engine) == 1

    assert relay(engine, broker, SystemClock()) == 1
    assert b"one" in published(broker, ALLOCATIONS)


def test_a_crash_after_publishing_publishes_again_rather_than_never(
    engine: sa.Engine, broker: FileBroker
) -> None:
    queue(engine, ALLOCATIONS, [b"one"])

    class _Dies:
        def now(self) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        relay(engine, broker, _Dies())  # type: ignore[arg-type]
    assert published(broker, ALLOCATIONS) == [b"one"]
    assert waiting(engine) == 1

    relay(engine, broker, SystemClock())
    assert published(broker, ALLOCATIONS) == [b"one", b"one"]
    assert waiting(engine) == 0


def test_a_message_is_published_only_when_it_was_committed(engine: sa.Engine, broker: FileBroker) -> None:
    with engine.connect() as connection:
        connection.exec_driver_sql(
            "INSERT INTO ledger.outbox (topic, key, value) VALUES ('gpu.allocations', 'k', 'lost')"
        )
        connection.rollback()
    assert relay(engine, broker, SystemClock()) == 0


def test_messages_keep_their_keys(
    engine: sa.Engine, broker: FileBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Message] = []
    publish = FilePublisher.publish

    def watch(self: FilePublisher, topic: Topic, messages: Iterable[Message]) -> None:
        messages = list(messages)
        seen.extend(messages)
        publish(self, topic, messages)

    monkeypatch.setattr(FilePublisher, "publish", watch)
    queue(engine, ALLOCATIONS, [b"one"])
    relay(engine, broker, SystemClock())
    assert seen == [Message("alpha", b"one")]


def test_a_relay_that_collides_goes_on_and_publishes_again_rather_than_never(
    engine: sa.Engine, broker: FileBroker
) -> None:
    queue(engine, ALLOCATIONS, [b"one"])
    with engine.begin() as connection:
        for statement in (
            "CREATE SEQUENCE public.collisions",
            "GRANT USAGE ON SEQUENCE public.collisions TO PUBLIC",
            """CREATE FUNCTION public.collide() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('public.collisions') = 1 THEN RAISE EXCEPTION 'in the way' USING ERRCODE = '40P01'; END IF;
            RETURN NULL; END $$""",
            "CREATE TRIGGER collide AFTER UPDATE ON ledger.outbox EXECUTE FUNCTION public.collide()",
        ):
            connection.exec_driver_sql(statement)
    assert relay(engine, broker, SystemClock()) == 1
    assert set(published(broker, ALLOCATIONS)) == {b"one"}
    assert waiting(engine) == 0
