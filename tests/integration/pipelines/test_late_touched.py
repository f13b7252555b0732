"""Days that a late fact touches, told by the real ledger, are those whose rows a roll-up of everything changes."""

import datetime as dt
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa
from tests.integration.ledger.books import (
    CLUSTER,
    Ledger,
    at,
    ended,
    granted,
    registered,
    run_of,
    started,
    submitted,
    told,
)
from tests.integration.pipelines.rows import DAY_S, HOUR_S, TABLES
from tests.integration.pipelines.running import restate

from gpuledger.database.engine import reading
from gpuledger.events import budget, host, workload
from gpuledger.events.budget import AccountCreated
from gpuledger.events.heartbeat import Heartbeat
from gpuledger.ledger.sealing import seal_event, sealed
from gpuledger_pipelines.defs.late.touched import PATIENCE_S, Mark, Touched, present, ranges, touched
from gpuledger_pipelines.partitions import Span

START = dt.date(2026, 11, 1)
START_S = at("2026-11-01T00:00:00Z")
DAYS = 12
NOW_S = START_S + DAYS * DAY_S
WHOLE = Span(CLUSTER, START_S, NOW_S, NOW_S)


def day(n: float) -> int:
    """The second at which so many days have passed."""
    return START_S + int(n * DAY_S)


@pytest.fixture
def ledger(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """Twelve days: two hosts, a run each day at ten, one that waited over midnight, and one that is still open."""
    monkeypatch.setenv("GPULEDGER_DATABASE_URL", database_url)
    ledger = Ledger(database_url)
    ledger.append(*(told(0, AccountCreated(account=a)) for a in ("org", "org/vision", "org/speech")))
    ledger.append(told(day(0), registered("h1", 8)), told(day(0), registered("h2", 8)))
    ten = [day(n) + 10 * HOUR_S for n in range(DAYS)]
    ledger.append(*(event for n, at_s in enumerate(ten) for event in run_of(at_s, at_s + HOUR_S, f"w{n}")))
    ledger.append(
        told(day(3.9), submitted("patient", account="org/speech", minimum_runtime_s=HOUR_S)),
        told(day(5.2), started("patient", hosts=["h2"])),
        told(day(5.3), ended("patient")),
        told(day(7.5), submitted("long", account="org/speech", user="bob")),
        told(day(7.5), started("long", hosts=["h2"], gpus_milli=4000)),
    )
    yield ledger
    ledger.engine.dispose()


def mark(ledger: Ledger) -> Mark:
    with ledger.engine.connect() as connection:
        return present(connection, NOW_S)[CLUSTER]


def find(ledger: Ledger, since: Mark | None, now: Mark | None = None) -> Touched:
    with ledger.engine.connect() as connection:
        return touched(
            connection, ledger.calendar, CLUSTER, since, now or present(connection, NOW_S)[CLUSTER]
        )


def rows(ledger: Ledger) -> set[tuple[object, ...]]:
    """Every row of every table by day, as text, with its day; when it was counted is no part of it."""
    found: set[tuple[object, ...]] = set()
    for table in set(TABLES) - {"budget_vs_actual", "forecast"}:
        at_column = "bucket_at" if "bucket" in table else "hour_at" if "hour" in table else "day"
        to_day = "day" if at_column == "day" else f"({at_column} AT TIME ZONE 'UTC')::date"
        found |= {
            (table, *row) for row in ledger.rows(f"SELECT {to_day}, t::text FROM warehouse.{table} AS t")
        }
    return found


def late_run(ledger: Ledger) -> None:
    ledger.append(*run_of(day(2.5), day(2.6), "late", hosts=["h2"]))


def later_end(ledger: Ledger) -> None:
    """What ended is told to have gone on over two midnights: only what is more of it is touched."""
    ledger.append(told(day(8.1), ended("w6", reason="failed"), source="test/better"))


def end_of_an_open_run(ledger: Ledger) -> None:
    ledger.append(told(day(9.5), ended("long")))


def earlier_submission(ledger: Ledger) -> None:
    ledger.append(told(day(5.1), submitted("w7", minimum_runtime_s=HOUR_S), source="reconcile/x"))


def host_failed(ledger: Ledger) -> None:
    for at_s, now in (
        (
            day(4.1),
            host.StateChanged(cluster=CLUSTER, host="h2", gpus=8, gpu_model="H100", state="unhealthy"),
        ),
        (day(4.2), host.StateChanged(cluster=CLUSTER, host="h2", gpus=8, gpu_model="H100", state="healthy")),
    ):
        ledger.append(told(at_s, now))


def share_set(ledger: Ledger) -> None:
    ledger.append(told(day(10), budget.ShareSet(account="org/vision", share=3, reason="test", by="test")))


def cancelled_while_waiting(ledger: Ledger) -> None:
    ledger.append(told(day(1.4), submitted("given-up", minimum_runtime_s=HOUR_S)))
    ledger.append(told(day(3.4), ended("given-up", None, reason="cancelled")))


def class_changed(ledger: Ledger) -> None:
    ledger.append(
        told(
            day(9),
            workload.ClassChanged(
                cluster=CLUSTER, workload="long", run="r1", klass="unallocated", reason="test"
            ),
        )
    )


def samples(ledger: Ledger) -> None:
    """An hour of samples comes late; the book's clock seals it."""
    with ledger.engine.begin() as connection:
        connection.execute(
            sa.text(
                "INSERT INTO telemetry.buckets"
                " (book, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms)"
                " SELECT :b, to_timestamp(:f + n * 300), 'g', 'w6', 'r1', 'gpu_util', 1200000, 0"
                " FROM generate_series(0, 11) AS n"
            ),
            {"b": CLUSTER, "f": day(6) + 10 * HOUR_S},
        )
    with reading(ledger.engine) as reader:
        fact = sealed(reader, CLUSTER, day(6) + 11 * HOUR_S)
    assert fact is not None
    ledger.append(seal_event(fact, day(6) + 11 * HOUR_S))


def moved_while_it_waited(ledger: Ledger) -> None:
    """It counts once, on the day on which it began to wait, and is demand of another from the moment on."""
    ledger.append(told(day(4.5), workload.Updated(cluster=CLUSTER, workload="patient", account="org/vision")))


FACTS = {
    late_run: [2],
    later_end: [6, 7, 8],
    end_of_an_open_run: [9, 10, 11],
    earlier_submission: [5, 6, 7],
    host_failed: [4],
    share_set: [10, 11],
    cancelled_while_waiting: [1, 2, 3],
    class_changed: [9, 10, 11],
    samples: [6],
    moved_while_it_waited: [3, 4, 5],
}


@pytest.mark.parametrize(("tell", "expected"), FACTS.items(), ids=[fact.__name__ for fact in FACTS])
def test_a_late_fact_touches_the_days_that_it_changes(
    ledger: Ledger, tell: Callable[[Ledger], None], expected: list[int]
) -> None:
    restate(ledger.url, WHOLE)
    since, before = mark(ledger), rows(ledger)
    tell(ledger)
    found = find(ledger, since)
    restate(ledger.url, WHOLE)
    changed = {row[1] for row in before ^ rows(ledger)}
    assert set(found.days) == changed
    assert [(each - START).days for each in found.days] == expected


def test_of_a_wait_that_was_cut_the_later_part_touches_the_day_on_which_it_all_began(ledger: Ledger) -> None:
    """It is told there of whom it is at last; no part that begins on that day is another, and no run is."""
    cancelled_while_waiting(ledger)

    def moved(at_s: int, account: str) -> None:
        ledger.append(told(at_s, workload.Updated(cluster=CLUSTER, workload="given-up", account=account)))

    moved(day(2.2), "org")
    test_a_late_fact_touches_the_days_that_it_changes(
        ledger, lambda _: moved(day(2.6), "org/speech"), [1, 2, 3]
    )


def test_a_fact_that_changes_nothing_touches_nothing(ledger: Ledger) -> None:
    since = mark(ledger)
    ledger.append(told(day(6) + 10 * HOUR_S + 60, ended("w6", reason="failed"), source="test/other"))
    ledger.append(told(day(6) + 10 * HOUR_S, started("w6", hosts=["h1"]), source="test/again"))
    assert mark(ledger).seq == since.seq + 2
    assert find(ledger, since).days == find(ledger, since).periods == ()


def test_what_has_no_tables_yet_is_rolled_up_from_its_first_day(ledger: Ledger) -> None:
    found = find(ledger, None)
    assert ranges(found.days) == [(START, START + dt.timedelta(days=DAYS - 1))]


def test_a_cluster_in_which_nobody_ran_has_nothing_to_roll_up(database_url: str) -> None:
    ledger = Ledger(database_url)
    ledger.append(told(day(0), registered("h1", 8)))
    assert find(ledger, None) == Touched()
    ledger.engine.dispose()


def test_a_day_is_over_when_the_slowest_source_has_passed_it(ledger: Ledger) -> None:
    for source, told_until in (("slow", day(10.5)), ("quick", day(11.9))):
        ledger.append(told(told_until, Heartbeat(cluster=CLUSTER), source=source))
    assert mark(ledger).until_s == day(10)
    since = Mark(mark(ledger).seq, 0, day(10))
    ledger.append(told(day(11.1), Heartbeat(cluster=CLUSTER), source="slow"))
    assert find(ledger, since).days == (START + dt.timedelta(days=10),)


def test_a_day_is_over_when_the_book_has_sealed_its_samples(ledger: Ledger) -> None:
    def ticked(at_s: int) -> int:
        ledger.change(f"UPDATE ledger.books SET ticked_at = to_timestamp({at_s}) WHERE book = '{CLUSTER}'")
        return mark(ledger).until_s

    assert ticked(day(11)) == day(10)
    assert ticked(day(11) + HOUR_S) == day(11)


def test_a_source_that_is_silent_is_not_waited_for_for_ever(ledger: Ledger) -> None:
    ledger.append(told(day(1.5), Heartbeat(cluster=CLUSTER), source="dead"))
    assert mark(ledger).until_s == NOW_S - PATIENCE_S


def test_a_period_that_is_over_and_was_posted_into_is_touched_though_no_day_is(ledger: Ledger) -> None:
    since = Mark(mark(ledger).seq, 0, at("2026-12-01T00:00:00Z"))
    ledger.append(told(day(5), granted("org/vision", "2026-11", 1000)))
    found = find(ledger, since, Mark(since.seq + 1, since.org_seq, since.until_s))
    assert found == Touched((), ("2026-11",))
    # One that goes on is restated whenever a day of it ends.
    going_on = Mark(since.seq, 0, NOW_S)
    assert find(ledger, going_on) == Touched()
