"""What observations mean stands in the book as facts, whatever the order, and follows the table."""

import itertools
from collections.abc import Sequence

import msgspec
import pytest
from tests.integration.ledger.books import CLUSTER, HOUR, NOON, Ledger, told

from gpuledger.database.engine import reading, writing
from gpuledger.events import host
from gpuledger.events.envelope import Event
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger import health_states, policies
from gpuledger.ledger.append import append
from gpuledger.ledger.health import STARTING_TABLE, Tables, Version
from gpuledger.ledger.rebuild import check

START = int(NOON.timestamp()) - 24 * HOUR
NAMED = {"cluster": CLUSTER, "host": "n1"}
INSTALLED = {**NAMED, "gpus": 8, "gpu_model": "h100"}


def observed(hours: int, kind: host.HealthKind, code: int | None = None, uuid: str = "GPU-1") -> Event:
    return told(START + hours * HOUR, host.HealthObserved(**NAMED, kind=kind, gpu_uuid=uuid, code=code))


def registered(hours: int = 0) -> Event:
    return told(START + hours * HOUR, host.Registered(**INSTALLED))


def append_and_conclude(ledger: Ledger, *events: Event) -> None:
    with writing(ledger.engine) as writer:
        append(writer, CLUSTER, list(events), clock=ledger.clock, calendar=Calendar())
        concluded = health_states.state_changes(writer, CLUSTER, ["n1"])
        append(writer, CLUSTER, concluded, clock=ledger.clock, calendar=Calendar())
        assert health_states.state_changes(writer, CLUSTER) == []


def states(ledger: Ledger) -> list[tuple[str, int, int | None]]:
    rows = ledger.rows(
        "SELECT state, extract(epoch FROM from_at)::bigint, extract(epoch FROM to_at)::bigint FROM ledger.hosts"
        " WHERE until_seq IS NULL AND host = 'n1' ORDER BY from_at"
    )
    told_ = [(s, (f - START) // HOUR, None if t is None else (t - START) // HOUR) for s, f, t in rows]
    # Intervals that say the same and meet are one.
    joined: list[tuple[str, int, int | None]] = []
    for state, begin, end in told_:
        if joined and joined[-1][0] == state:
            joined[-1] = (state, joined[-1][1], end)
        else:
            joined.append((state, begin, end))
    return joined


def test_where_parts_of_a_host_may_be_used_one_bad_gpu_costs_one_gpu(ledger: Ledger) -> None:
    """From when on the inventory says so, whatever had been concluded before, and until it says otherwise."""
    append_and_conclude(ledger, registered(), observed(1, "xid", 79))
    for hours, partial in ((2, True), (4, False)):
        changed = host.Registered(**INSTALLED, partial_use=partial)
        append_and_conclude(ledger, told(START + hours * HOUR, changed))
    append_and_conclude(ledger, observed(5, "clean"))
    rows = ledger.rows(
        "SELECT extract(epoch FROM from_at)::bigint, state, gpus, partial_use FROM ledger.hosts"
        " WHERE until_seq IS NULL ORDER BY from_at, state"
    )
    assert [((at_s - START) // HOUR, *rest) for at_s, *rest in rows] == [
        (0, "healthy", 8, False),
        (1, "unhealthy", 8, False),
        (2, "healthy", 7, True),
        (2, "unhealthy", 1, True),
        (4, "unhealthy", 8, False),
        (5, "healthy", 8, False),
    ]
    with reading(ledger.engine) as reader:
        assert check(reader, Calendar()).ok


STORY = (
    registered(),
    observed(1, "xid", 79),
    observed(3, "clean"),
    observed(5, "xid", 74, "GPU-2"),
    observed(7, "xid", 74, "GPU-2"),
    observed(9, "clean", uuid="GPU-2"),
    told(START + 10 * HOUR, host.StateChanged(**INSTALLED, state="maintenance", reason="planned")),
    observed(11, "remap_pending"),
    observed(12, "clean"),
)
EXPECTED = [
    ("healthy", 0, 1), ("unhealthy", 1, 3), ("healthy", 3, 5), ("unhealthy", 5, 9), ("healthy", 9, 10),
    ("maintenance", 10, 11), ("draining", 11, 12), ("maintenance", 12, None),
]  # fmt: skip


@pytest.mark.parametrize(
    "order",
    [STORY, STORY[::-1], (*STORY[4:], *STORY[:4]), tuple(itertools.chain(STORY[::2], STORY[1::2]))],
    ids=["in order", "backwards", "the end first", "mixed"],
)
def test_hosts_are_as_healthy_as_the_evidence_says_in_whatever_order_it_came(
    ledger: Ledger, order: Sequence[Event]
) -> None:
    for event in order:
        append_and_conclude(ledger, event)
    assert states(ledger) == EXPECTED
    with reading(ledger.engine) as reader:
        assert check(reader, Calendar()).ok


def test_a_conclusion_names_device_reason_evidence_and_lag(ledger: Ledger) -> None:
    append_and_conclude(ledger, *STORY)
    rows = ledger.rows(
        "SELECT body->>'reason', body->'gpu_uuids'->>0, body->>'evidence_at', body->>'noticed_at' FROM ledger.journal"
        " WHERE type = 'host.state_changed' AND source = 'gpuledger/health' AND body->>'state' = 'unhealthy'"
        " ORDER BY effective_at"
    )
    assert rows == [
        ("xid-79", "GPU-1", "2026-11-30T13:00:00Z", None),
        ("xid-74-repeated", "GPU-2", "2026-11-30T17:00:00Z", "2026-11-30T19:00:00Z"),
    ]


def test_evidence_of_a_host_that_is_not_installed_waits_for_its_inventory(ledger: Ledger) -> None:
    append_and_conclude(ledger, observed(1, "xid", 79))
    assert states(ledger) == []
    append_and_conclude(ledger, registered())
    assert states(ledger) == [("healthy", 0, 1), ("unhealthy", 1, None)]


def test_another_table_from_a_moment_on_restates_what_follows_it(ledger: Ledger) -> None:
    append_and_conclude(
        ledger, registered(), observed(1, "xid", 79), observed(2, "clean"), observed(4, "xid", 79)
    )
    table = msgspec.structs.replace(STARTING_TABLE, unhealthy=[48], application=[79])
    for _ in range(2):
        with writing(ledger.engine) as writer:
            policies.set_xid_table(
                writer, table, START + 3 * HOUR, "ada", clock=ledger.clock, calendar=Calendar()
            )
    with writing(ledger.engine) as writer:
        policies.bring_up_to_date(writer, CLUSTER, clock=ledger.clock, calendar=Calendar())
    assert states(ledger) == [("healthy", 0, 1), ("unhealthy", 1, 2), ("healthy", 2, None)]
    assert ledger.rows("SELECT count(*) FROM ledger.journal WHERE type = 'policy.changed'") == [(1,)]
    with reading(ledger.engine) as reader:
        assert health_states.tables(reader).at(START + 3 * HOUR) == table
        assert check(reader, Calendar()).ok


def test_availability_is_computed_anew_under_any_table(ledger: Ledger) -> None:
    append_and_conclude(ledger, *STORY)
    nothing = msgspec.structs.replace(
        STARTING_TABLE, unhealthy=[], repeated={}, remap_pending="healthy", draining=[]
    )
    with reading(ledger.engine) as reader:
        as_it_was = health_states.concluded(reader, CLUSTER)
        otherwise = health_states.concluded(reader, CLUSTER, Tables([Version(0, 1, nothing)]))
    assert [(t.reason, (t.from_s - START) // HOUR) for t in as_it_was] == [
        ("xid-79", 1), ("xid-74-repeated", 5), ("remap-pending", 11),
    ]  # fmt: skip
    assert otherwise == []
