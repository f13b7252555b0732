"""What a worker holds: taken by raising an epoch, and lost to whoever raises it next."""

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import make_engine, reading, writing
from gpuledger.ingest import offsets
from gpuledger.ingest.holding import Holding, group_name, passed
from gpuledger.kernel.errors import Fenced
from gpuledger.streams.topics import SCHEDULER_EVENTS, TELEMETRY


def holding(engine: sa.Engine, told: list[str] | None = None) -> Holding:
    return Holding(engine, "ledger", SCHEDULER_EVENTS, (told if told is not None else []).append)


def book(engine: sa.Engine, held: Holding, partition: int, position: int) -> None:
    """Move on as a worker does that booked up to a position."""
    with writing(engine) as writer:
        offsets.advance(writer, held.claims[partition], position)
    held.positions[partition] = position


def test_what_another_took_is_read_on_from_where_the_last_booking_stands(engine: sa.Engine) -> None:
    one, two = holding(engine), holding(engine)
    assert one.take([0, 1]) == {0: 0, 1: 0}
    book(engine, one, 0, 17)
    assert two.take([0]) == {0: 17}
    assert (two.claims[0].epoch, one.claims[0].epoch) == (2, 1)


def test_one_partition_that_another_took_fences_until_it_is_let_go(engine: sa.Engine) -> None:
    one, two = holding(engine), holding(engine)
    one.take([0, 1])
    two.take([1])
    with writing(engine) as writer, pytest.raises(Fenced, match=r"gpu.scheduler.events\[1\] was taken over"):
        one.check(writer)
    one.release([1])
    with writing(engine) as writer:
        one.check(writer)
    assert one.positions == {0: 0}


def test_a_partition_that_is_taken_back_is_held_again(engine: sa.Engine) -> None:
    one, two = holding(engine), holding(engine)
    one.take([0])
    two.take([0])
    one.take([0])
    with writing(engine) as writer:
        one.check(writer)
    with writing(engine) as writer, pytest.raises(Fenced):
        two.check(writer)


def test_an_end_is_passed_when_all_up_to_there_is_booked_whoever_did_it(engine: sa.Engine) -> None:
    one, two = holding(engine), holding(engine)
    one.take([0])
    two.take([1])
    ends = {0: 5, 1: 3, 2: 0}
    assert not one.passed(ends)
    book(engine, one, 0, 5)
    assert not one.passed(ends), "the other one has not booked its part"
    book(engine, two, 1, 4)
    assert one.passed(ends)
    assert two.passed(ends)
    assert not one.passed({**ends, 2: 1}), "nobody has read the last partition"
    assert holding(engine).passed(ends), "one who holds nothing sees it too"


def test_no_end_is_passed_by_a_position_before_it() -> None:
    assert passed({0: 5}, {0: 5})
    assert passed({}, {0: 0})
    assert not passed({0: 4}, {0: 5})
    assert not passed({0: 9}, {1: 1})


def test_an_operator_is_told_which_partitions_come_and_go(engine: sa.Engine) -> None:
    told: list[str] = []
    held = holding(engine, told)
    held.take([3, 0])
    held.take([])
    held.release([3])
    held.release([])
    assert told == [
        "gpu.scheduler.events: reads partitions 0, 3",
        "gpu.scheduler.events: leaves partitions 3 to others",
    ]


def test_workers_of_one_ledger_and_topic_are_a_group_and_no_others(
    database_url: str, engine: sa.Engine
) -> None:
    """Two ledgers that are fed by one topic must each have all of it."""
    maintenance = make_engine(database_url.replace(f"/{engine.url.database}?", "/postgres?"))
    with reading(engine) as mine, reading(maintenance) as other:
        names = [
            group_name(mine, "ledger", SCHEDULER_EVENTS),
            group_name(mine, "ledger", TELEMETRY),
            group_name(mine, "jobcomp", SCHEDULER_EVENTS),
            group_name(other, "ledger", SCHEDULER_EVENTS),
        ]
        assert group_name(mine, "ledger", SCHEDULER_EVENTS) == names[0]
    maintenance.dispose()
    assert len(set(names)) == len(names)
    assert all(name.startswith("gpuledger-") for name in names)
