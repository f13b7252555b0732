"""Events of any book, booked: one transaction per book, accounts first, days in the organisation's zone."""

import datetime as dt
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from decimal import Decimal

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import Writer, make_engine, reading, writing
from gpuledger.events import budget, host, telemetry, workload
from gpuledger.events.envelope import Event, make
from gpuledger.events.mapping import MappingRule
from gpuledger.events.registry import Fact
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock
from gpuledger.kernel.errors import BadRecord
from gpuledger.ledger import queries
from gpuledger.ledger.append import append
from gpuledger.ledger.balances import BalanceQuery, balances
from gpuledger.ledger.rebuild import check

NOON = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
OCTOBER_29 = int(dt.datetime(2017, 10, 29, 22, 30, tzinfo=dt.UTC).timestamp())
BERLIN = budget.PolicyChanged(policy="organisation", timezone="Europe/Berlin", period="month")


def told(at_s: int, fact: Fact) -> Event:
    return make(id=f"{type(fact).__name__}/{at_s}/{fact}", source="test", at_s=at_s, data=fact)[0]


def submitted(cluster: str = "alpha", account: str = "org/vision") -> workload.Submitted:
    return workload.Submitted(cluster=cluster, workload="w1", account=account, user="ada", gpus_milli=1000)


def run_of(start_s: int, end_s: int) -> list[Event]:
    named = {"cluster": "alpha", "workload": "w1"}
    return [
        told(start_s, submitted()),
        told(start_s, workload.Started(**named, run="r1", attempt=1, gpus_milli=1000, hosts=["h1"])),
        told(end_s, workload.Ended(**named, run="r1", reason="completed")),
    ]


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


def rows(engine: sa.Engine, query: str) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query)]


def test_accounts_are_created_on_first_sight_with_all_above_them_before_anything_is_booked(
    engine: sa.Engine,
) -> None:
    Intake(engine, FixedClock(NOON), Calendar()).take([told(0, submitted(account="org/vision/seg"))])
    with reading(engine) as reader:
        assert queries.account_paths(reader) == ["org", "org/vision", "org/vision/seg"]


def test_an_account_is_created_once_whoever_sees_it_first(engine: sa.Engine) -> None:
    first, second = (Intake(engine, FixedClock(NOON), Calendar()) for _ in range(2))
    first.take([told(0, submitted())])
    second.take([told(1, submitted())])
    assert rows(engine, "SELECT count(*) FROM ledger.journal WHERE book = '~org'") == [(2,)]


MAPPED = budget.PolicyChanged(
    policy="mapping", rules=[MappingRule(account=("ml-*",), to="lab/{account}")], by=budget.Part.INGEST
)


def test_of_mapped_work_the_account_it_leads_to_is_created_and_not_the_foreign_one(engine: sa.Engine) -> None:
    intake = Intake(engine, FixedClock(NOON), Calendar())
    intake.take([told(0, MAPPED)])
    intake.take([told(0, submitted(account="ml-x")), told(0, budget.AccountCreated(account="org"))])
    intake.take([told(1, submitted(account="other"))])
    with reading(engine) as reader:
        assert queries.account_paths(reader) == ["lab", "lab/ml-x", "org", "unmapped", "unmapped/other"]


def test_an_account_that_a_crash_kept_from_being_created_is_created_by_the_next_worker(
    engine: sa.Engine,
) -> None:
    intake = Intake(engine, FixedClock(NOON), Calendar())
    intake.take([told(0, MAPPED)])
    with writing(engine) as writer:  # as a worker does that ends right after it
        append(writer, "alpha", run_of(0, 9), clock=FixedClock(NOON), calendar=Calendar())
    Intake(engine, FixedClock(NOON), Calendar())
    with reading(engine) as reader:
        assert queries.account_paths(reader) == ["unmapped", "unmapped/org", "unmapped/org/vision"]


def test_both_accounts_of_a_transfer_are_created(engine: sa.Engine) -> None:
    moved = budget.Transferred(
        account="org/a", to="org/b", cluster="alpha", period="2017-10", gpu_ms=1, reason="t", by="t"
    )
    Intake(engine, FixedClock(NOON), Calendar()).take([told(0, moved)])
    assert rows(engine, "SELECT account FROM ledger.accounts ORDER BY 1") == [
        ("org",),
        ("org/a",),
        ("org/b",),
    ]


def test_what_was_new_and_what_was_known_are_told_apart(engine: sa.Engine) -> None:
    intake = Intake(engine, FixedClock(NOON), Calendar())
    gpu = telemetry.GpuSample(uuid="GPU-1", gpu_util=Decimal(5))
    sample = told(0, telemetry.Sampled(cluster="alpha", host="h1", interval_s=60, gpus=[gpu]))
    taken = intake.take([*run_of(0, 9), sample, sample])
    assert (len(taken.accepted), taken.repeated) == (4, 1)
    again = intake.take([*run_of(0, 9), sample])
    assert (again.accepted, again.repeated) == (set(), 4)


def test_the_guard_runs_in_every_transaction_and_is_told_the_last(engine: sa.Engine) -> None:
    calls: list[bool] = []

    def guard(writer: Writer, *, last: bool) -> None:
        assert writer.in_transaction()
        calls.append(last)

    intake = Intake(engine, FixedClock(NOON), Calendar())
    intake.take([told(0, submitted()), told(0, submitted("beta"))], guard)
    assert calls == [False, False, False, True]  # accounts, people, alpha, beta
    intake.take([], guard)
    assert calls == [False, False, False, True, True]


def test_a_guard_that_refuses_leaves_the_book_as_it_was(engine: sa.Engine) -> None:
    def refuse(writer: Writer, *, last: bool) -> None:
        raise RuntimeError("fenced")

    with pytest.raises(RuntimeError, match="fenced"):
        Intake(engine, FixedClock(NOON), Calendar()).take([told(0, submitted())], refuse)
    assert rows(engine, "SELECT count(*) FROM ledger.journal WHERE book = 'alpha'") == [(0,)]


def test_a_zone_set_with_the_first_grants_cuts_the_periods_that_open_at_once(engine: sa.Engine) -> None:
    intake = Intake(engine, FixedClock(NOON), Calendar())
    machine = host.Registered(cluster="alpha", host="h1", gpus=1, gpu_model="H100")
    grant = budget.Granted(account="org/a", cluster="alpha", period="2017-10", gpu_ms=1, reason="t", by="t")
    intake.take(
        [told(0, BERLIN), told(0, budget.AccountCreated(account="org/b")), told(0, machine), told(0, grant)]
    )
    assert intake.open_periods(["alpha"]) == {"alpha": ["2017-10"]}
    with reading(engine) as reader:
        granted = {b.account: b.granted_gpu_ms for b in balances(reader, BalanceQuery("alpha", "2017-10"), 0)}
    assert granted["org/b"] == (31 * 24 + 1) * 3_600_000 // 2  # October has one hour more in Berlin


def test_a_zone_that_another_process_set_cuts_the_days_of_what_comes_after(engine: sa.Engine) -> None:
    worker = Intake(engine, FixedClock(NOON), Calendar())
    Intake(engine, FixedClock(NOON), Calendar()).take([told(0, BERLIN)])
    worker.take(run_of(OCTOBER_29, OCTOBER_29 + 3600))
    days = rows(
        engine, "SELECT effective_on::text, amount FROM ledger.postings WHERE commodity = 'gpu_ms' ORDER BY 1"
    )
    assert days == [("2017-10-29", 1_800_000), ("2017-10-30", 1_800_000)]


def test_clocks_of_the_named_and_of_the_running_books_move_each_in_a_guarded_transaction(
    engine: sa.Engine,
) -> None:
    calls: list[bool] = []

    def guard(writer: Writer, *, last: bool) -> None:
        assert writer.in_transaction()
        calls.append(last)

    hour_s = int(NOON.timestamp()) - 3600
    intake = Intake(engine, FixedClock(NOON), Calendar())
    intake.take([told(0, submitted()), told(0, submitted("beta")), told(0, submitted("gamma"))])
    assert intake.tick(["alpha", "~org"], hour_s, guard) == {"alpha"}
    assert intake.tick(["beta"], hour_s + 3600, guard) == {"alpha", "beta"}
    assert intake.tick([], hour_s + 3600, guard) == set()
    assert calls == [False] * 5
    ticks = rows(
        engine, "SELECT book, count(*) FROM ledger.journal WHERE type = 'ledger.ticked' GROUP BY 1 ORDER BY 1"
    )
    assert ticks == [("alpha", 2), ("beta", 1)]


def test_a_guard_that_refuses_leaves_the_clock_where_it_was(engine: sa.Engine) -> None:
    def refuse(writer: Writer, *, last: bool) -> None:
        raise RuntimeError("fenced")

    with pytest.raises(RuntimeError, match="fenced"):
        Intake(engine, FixedClock(NOON), Calendar()).tick(["alpha"], 0, refuse)
    assert rows(engine, "SELECT count(*) FROM ledger.journal") == [(0,)]


def test_evidence_and_inventory_are_concluded_from_in_the_same_transaction(engine: sa.Engine) -> None:
    clock = FixedClock(NOON)
    intake = Intake(engine, clock, Calendar())
    at_s = int(NOON.timestamp()) - 3600
    named = {"cluster": "alpha", "host": "n1"}
    xid = host.HealthObserved(**named, kind="xid", gpu_uuid="GPU-1", code=79)
    intake.take([make(id="xid", source="kernel/alpha", at_s=at_s, data=xid)[0]])
    installed = host.Registered(**named, gpus=8, gpu_model="h100")
    intake.take([make(id="n1", source="inventory", at_s=0, data=installed)[0]])
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(
            "SELECT state, from_at FROM ledger.hosts WHERE until_seq IS NULL ORDER BY from_at"
        ).all()
    assert [(state, int(from_at.timestamp())) for state, from_at in rows] == [
        ("healthy", 0),
        ("unhealthy", at_s),
    ]


MAY = dt.datetime(2031, 5, 1, tzinfo=dt.UTC)
"""Of a month that has no partitions yet."""


@pytest.mark.parametrize("at", [NOON, MAY], ids=["the same new person", "a new month"])
def test_books_that_meet_what_is_new_do_not_wait_for_each_other(engine: sa.Engine, at: dt.datetime) -> None:
    inside, may_end = threading.Event(), threading.Event()

    def hold(writer: Writer, *, last: bool) -> None:
        if last:
            inside.set()
            may_end.wait(30)

    slow = threading.Thread(
        target=Intake(engine, FixedClock(at), Calendar()).take, args=([told(0, submitted())], hold)
    )
    slow.start()
    assert inside.wait(30)
    with ThreadPoolExecutor(1) as pool:
        other = Intake(engine, FixedClock(at), Calendar())
        done = pool.submit(other.take, [told(0, submitted("beta"))])
        try:
            assert done.result(20).accepted
        finally:
            may_end.set()
            slow.join(30)


ZONES = "SELECT timezone FROM ledger.organisation ORDER BY set_seq"


def test_the_zone_of_the_settings_is_written_down_before_the_first_fact(engine: sa.Engine) -> None:
    """Whoever comes later with other settings books by it; orders of the organisation alone do not fix it."""
    tokyo = Calendar("Asia/Tokyo")
    Intake(engine, FixedClock(NOON), tokyo).take(
        [make(id="a", source="test", at_s=0, data=budget.AccountCreated(account="org/a"))[0]]
    )
    assert rows(engine, ZONES) == []
    late = 16 * 3600  # the next day in Tokyo
    Intake(engine, FixedClock(NOON), tokyo).take(run_of(late, late + 60))
    Intake(engine, FixedClock(NOON), Calendar()).take([told(0, submitted("beta"))])
    Intake(engine, FixedClock(NOON), Calendar("Europe/Berlin")).take([told(0, submitted("gamma"))])
    assert rows(engine, ZONES) == [("Asia/Tokyo",)]
    assert rows(engine, "SELECT DISTINCT effective_on::text FROM ledger.postings") == [("1970-01-02",)]


def test_a_zone_that_a_budget_file_set_is_not_told_again(engine: sa.Engine) -> None:
    tokyo = Intake(engine, FixedClock(NOON), Calendar("Asia/Tokyo"))
    tokyo.take([make(id="zone", source="test", at_s=0, data=BERLIN)[0]])
    tokyo.take([told(0, submitted())])
    assert rows(engine, ZONES) == [("Europe/Berlin",)]


def test_facts_that_were_booked_before_any_zone_are_cut_by_utc_whatever_a_process_is_started_with(
    engine: sa.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    late = 16 * 3600  # the next day in Tokyo
    Intake(engine, FixedClock(NOON), Calendar()).take(run_of(late, late + 60))
    tokyo = Intake(engine, FixedClock(NOON), Calendar("Asia/Tokyo"))
    assert [record.getMessage() for record in caplog.records] == [
        "GPULEDGER_TIMEZONE is Asia/Tokyo and does not count: days of this ledger are cut by UTC"
    ]
    tokyo.take([told(late + 120, workload.Ended(cluster="alpha", workload="w1", run="r1", reason="x"))])
    tokyo.take([told(0, submitted("beta"))])
    assert rows(engine, ZONES) == [("UTC",)]
    assert rows(engine, "SELECT DISTINCT effective_on::text FROM ledger.postings") == [("1970-01-01",)]
    with reading(engine) as reader:
        assert queries.calendar(reader, Calendar("Asia/Tokyo")) == Calendar()
        assert check(reader, Calendar("Asia/Tokyo")).ok


def test_who_begins_a_book_while_the_zone_of_the_settings_is_written_down_is_waited_for(
    engine: sa.Engine,
) -> None:
    tokyo = Intake(engine, FixedClock(NOON), Calendar("Asia/Tokyo"))
    late = 16 * 3600
    with ThreadPoolExecutor() as pool:
        with writing(engine) as writer:
            append(writer, "alpha", run_of(late, late + 60), clock=FixedClock(NOON), calendar=Calendar())
            waits = pool.submit(tokyo.take, [told(0, submitted("beta"))])
            with pytest.raises(FutureTimeout):
                waits.result(0.5)
        waits.result(30)
    assert rows(engine, ZONES) == [("UTC",)]
    with reading(engine) as reader:
        assert check(reader, Calendar("Asia/Tokyo")).ok


@pytest.mark.parametrize("default", [Calendar(), Calendar("Asia/Tokyo")])
@pytest.mark.parametrize("is_one_batch", [True, False])
def test_a_zone_and_the_facts_of_its_batch_are_booked_in_turn(
    engine: sa.Engine, default: Calendar, *, is_one_batch: bool
) -> None:
    """Other orders come first, so that the order of books alone would take the zone before the facts."""
    intake = Intake(engine, FixedClock(NOON), default)
    before, facts, zone = told(0, budget.AccountCreated(account="org/a")), run_of(0, 60), told(0, BERLIN)
    *turns, last = [[before, *facts, zone]] if is_one_batch else [[before], facts, [zone]]
    for turn in turns:
        intake.take(turn)
    with pytest.raises(BadRecord, match=f"Europe/Berlin differs from {default.timezone}"):
        intake.take(last)
    assert ("Europe/Berlin",) not in rows(engine, ZONES)
    with reading(engine) as reader:
        assert queries.calendar(reader, Calendar()) == default


@pytest.mark.parametrize("default", [Calendar(), Calendar("Asia/Tokyo")])
def test_a_zone_counts_for_the_facts_that_follow_it_in_its_batch(
    engine: sa.Engine, default: Calendar
) -> None:
    intake = Intake(engine, FixedClock(NOON), default)
    intake.take([told(0, BERLIN), *run_of(OCTOBER_29, OCTOBER_29 + 3600)])
    assert rows(engine, ZONES) == [("Europe/Berlin",)]
    days = rows(engine, "SELECT DISTINCT effective_on::text FROM ledger.postings ORDER BY 1")
    assert days == [("2017-10-29",), ("2017-10-30",)]
