"""A cycle as messages."""

from typing import Any

from gpuledger.events.budget import AllocationIssued
from gpuledger.events.envelope import decode
from gpuledger.policy.publication import PART_BYTES, messages

LISTS = ("allocations", "decisions", "reservations")


def issued(decisions: int, reservations: int = 0) -> AllocationIssued:
    record: dict[str, Any] = {
        "cluster": "c",
        "cycle": "c@1",
        "supply_gpus": 8,
        "allocations": [{"account": "a"}],
        "decisions": [{"workload": f"w{n}", "reason": "x" * 400} for n in range(decisions)],
        "reservations": [{"workload": f"w{n}", "hosts": {}} for n in range(reservations)],
    }
    return AllocationIssued(
        cluster="c", cycle="c@1", sequences={"c": 1}, config_version="v", input_digest="d", record=record
    )


def test_a_small_cycle_is_one_message() -> None:
    (value,) = messages(issued(3), 60)
    event = decode(value)
    assert (event.id, event.at_s, event.data) == ("cycle/c@1", 60, issued(3))


def test_the_parts_of_a_long_cycle_list_everything_once_in_order_and_none_is_large() -> None:
    whole = issued(5000, 3)
    values = list(messages(whole, 60))
    assert len(values) > 5
    assert max(map(len, values)) < 2 * PART_BYTES
    parts: list[Any] = [decode(value).data for value in values]
    assert [(part.part, part.parts) for part in parts] == [
        (n, len(values)) for n in range(1, len(values) + 1)
    ]
    assert len({decode(value).id for value in values}) == len(values)
    for name in LISTS:
        assert [item for part in parts for item in part.record[name]] == whole.record[name]
    assert {part.record["supply_gpus"] for part in parts} == {8}
