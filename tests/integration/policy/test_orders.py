"""Orders of the newest cycle, for schedulers that take them."""

from tests.integration.policy.worlds import HOUR, NOON, World, started

from gpuledger.database.engine import reading
from gpuledger.policy.orders import directives


def test_starts_name_their_hosts_and_preemptions_when_to_be_gone(world: World) -> None:
    with reading(world.engine) as reader:
        assert directives(reader, "c", now_s=NOON) is None
    first = world.cycle()
    with reading(world.engine) as reader:
        found = directives(reader, "c", now_s=NOON)
        assert found is not None
        assert (found.cycle, found.at_s, found.preemptions) == (first["cycle"], NOON, [])
        assert [(start["workload"], start["hosts"]) for start in found.starts] == [("w-b4", {"h1": 4000})]
        assert directives(reader, "c", now_s=NOON, after=found.cursor) is None
        assert directives(reader, "c", now_s=NOON - 1) is None
    world.intake.take([started("w-b4", NOON, 4, "h1")])
    world.cycle(NOON + HOUR)
    with reading(world.engine) as reader:
        due = directives(reader, "c", now_s=NOON + HOUR, after=found.cursor)
    assert due is not None
    assert due.cursor > found.cursor
    assert due.starts == []
    assert [(one["workload"], one["run"], one["leave_by"]) for one in due.preemptions] == [
        ("w-a", "1", "2027-01-15T09:01:00Z"), ("w-b4", "1", "2027-01-15T09:01:00Z"),
    ]  # fmt: skip
    world.cycle(NOON + HOUR + 60)
    with reading(world.engine) as reader:
        again = directives(reader, "c", now_s=NOON + HOUR + 60, after=due.cursor)
    assert again is not None
    assert [one["leave_by"] for one in again.preemptions] == ["2027-01-15T09:01:00Z"] * 2
