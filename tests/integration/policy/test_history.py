"""The past decides fairly: newcomers, cut shares, idle weeks, deep trees. Each on a real ledger, in a whole cycle."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa
from tests.integration.policy.worlds import CLOCK, HOUR, NOON, by_account, decided, event

from gpuledger.database.engine import make_engine, reading, writing
from gpuledger.events import budget, host, incident, workload
from gpuledger.events.envelope import Event, book_of
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.knobs import PolicyConfig, Value
from gpuledger.ledger.append import append
from gpuledger.policy.history import read_past
from gpuledger.policy.service import issue_cycle

DAY = 24 * HOUR
WEEK = 7 * DAY
GPU_HOUR = 3_600_000


@dataclass
class Cluster:
    """One cluster of hosts with ten GPUs; everything about it is told as facts."""

    engine: sa.Engine
    count: int = 0

    def tell(self, at_s: int, *facts: Any) -> None:  # noqa: ANN401 - any facts of one book
        events = [self._event(at_s, fact) for fact in facts]
        with writing(self.engine) as writer:
            append(writer, book_of(events[0].data), events, clock=CLOCK, calendar=Calendar())

    def _event(self, at_s: int, fact: Any) -> Event:  # noqa: ANN401
        self.count += 1
        return event(f"e{self.count}", at_s, fact)

    def hosts(self, count: int, *, on: str = "c", model: str = "x", gpus: int = 10, at_s: int = 0) -> None:
        names = (f"{model}{n}" if model != "x" else f"h{n}" for n in range(count))
        self.tell(
            at_s, *(host.Registered(cluster=on, host=name, gpus=gpus, gpu_model=model) for name in names)
        )

    def share(self, account: str, share: int, at_s: int = 0, *, born: bool = True) -> None:
        created = [budget.AccountCreated(account=account)] if born else []
        self.tell(at_s, *created, budget.ShareSet(account=account, share=share, reason="test", by="test"))

    def wait(self, name: str, account: str, gpus: float, at_s: int = NOON - HOUR, **more: Any) -> None:  # noqa: ANN401
        asked = {"cluster": "c", "minimum_runtime_s": HOUR, **more}
        milli = round(gpus * 1000)
        self.tell(
            at_s, workload.Submitted(workload=name, account=account, user="-", gpus_milli=milli, **asked)
        )

    def use(
        self, name: str, account: str, gpus: float, from_s: int, to_s: int | None = None, *hosts: str, **more: Any  # noqa: ANN401
    ) -> None:  # fmt: skip
        self.wait(name, account, gpus, from_s, **more)
        run = {"cluster": "c", **more, "workload": name, "run": "1"}
        milli = round(gpus * 1000)
        self.tell(from_s, workload.Started(attempt=1, gpus_milli=milli, hosts=list(hosts), **run))
        if to_s is not None:
            run.pop("gpu_model", None)
            self.tell(to_s, workload.Ended(reason="completed", **run))

    def set(self, at_s: int = 0, **settings: Value) -> None:
        self.tell(at_s, budget.PolicyChanged(policy="settings", settings=settings))

    def cycle(self, at_s: int = NOON) -> dict[str, Any]:
        return issue_cycle(self.engine, "c", at_s=at_s, clock=CLOCK, calendar=Calendar(), dry_run=True)

    def account(self, path: str, at_s: int = NOON) -> dict[str, Any]:
        return by_account(self.cycle(at_s))[path]


@pytest.fixture
def cluster(database_url: str) -> Iterator[Cluster]:
    engine = make_engine(database_url)
    yield Cluster(engine)
    engine.dispose()


def test_an_account_one_minute_old_starts_a_debug_gang_promptly(cluster: Cluster) -> None:
    """It owns a tenth of a full cluster; the other owns nine, used all of it for a week, and wants more."""
    cluster.hosts(10)
    cluster.share("old", 9)
    for n in range(10):
        cluster.use(f"old-{n}", "old", 10, NOON - 8 * DAY, None, f"h{n}")
        cluster.wait(f"more-{n}", "old", 10)
    cluster.share("new", 1, NOON - 60)
    cluster.wait("debug", "new", 8, NOON - 30, minimum_runtime_s=600)
    record = cluster.cycle()
    new = by_account(record)["new"]
    # It is entitled to its tenth for one minute, and at par for the rest of the week.
    assert (new["entitled_gpu_ms"], new["par_gpu_ms"]) == (60 * 10_000, (WEEK - 60) * 10_000)
    assert (new["used_gpu_ms"], new["ratio"]) == (0, f"{(WEEK - 60) / (WEEK + 8 * HOUR):.6f}")
    # Of the waiting work it is first, and gets its GPUs after no more than the notice: 15 minutes.
    assert record["decisions"][0]["workload"] == "debug"
    (kept,) = (kept for kept in record["reservations"] if kept["workload"] == "debug")
    assert kept["at"] <= "2027-01-15T08:15:00Z"
    # What somebody leaves meanwhile goes to it at once.
    cluster.tell(NOON + 60, workload.Ended(cluster="c", workload="old-3", run="1", reason="completed"))
    starts = decided(cluster.cycle(NOON + 60), "start")
    assert [start["workload"] for start in starts][:1] == ["debug"]


def test_a_share_cut_from_40_to_10_percent_is_not_held_against_past_use(cluster: Cluster) -> None:
    cluster.hosts(10)
    cluster.share("a", 40)
    cluster.share("b", 60)
    cluster.share("a", 10, NOON - DAY, born=False)
    cluster.share("b", 90, NOON - DAY, born=False)
    cluster.use("w-a", "a", 40, NOON - 10 * DAY, NOON - DAY, "h0", "h1", "h2", "h3")
    cluster.use("w-b", "b", 60, NOON - 10 * DAY, NOON - DAY, *(f"h{n}" for n in range(4, 10)))
    cluster.use("v-a", "a", 10, NOON - DAY, None, "h0")
    cluster.use("v-b", "b", 90, NOON - DAY, None, *(f"h{n}" for n in range(1, 10)))
    found = by_account(cluster.cycle())
    a, b = found["a"], found["b"]
    assert a["entitled_gpu_ms"] == 6 * DAY * 40_000 + DAY * 10_000 == a["used_gpu_ms"]
    assert b["entitled_gpu_ms"] == 6 * DAY * 60_000 + DAY * 90_000 == b["used_gpu_ms"]
    assert (a["issued_gpus"], b["issued_gpus"]) == (10, 90)


def test_an_account_idle_for_a_week_catches_up_without_pushing_others_below_the_floor(
    cluster: Cluster,
) -> None:
    """Half of the cluster is its own; the two others own a quarter each, used half each, and run all of it."""
    cluster.hosts(10)
    cluster.share("idle", 2)
    for name in ("x", "y"):
        cluster.share(name, 1)
    for n in range(10):
        cluster.use(f"run-{n}", "x" if n < 5 else "y", 10, NOON - 8 * DAY, None, f"h{n}")
        cluster.wait(f"more-{n}", "x" if n < 5 else "y", 10)
        cluster.wait(f"back-{n}", "idle", 10, NOON - 60)
    record = cluster.cycle()
    found = by_account(record)
    assert found["idle"]["ratio"] == "0.000000"
    # It is issued the most that the others' least weights (half of a quarter each) leave it.
    assert found["x"]["issued_gpus"] == found["y"]["issued_gpus"] < 5
    left = [decision["workload"] for decision in decided(record, "preempt")]
    for name, runs in (("x", range(5)), ("y", range(5, 10))):
        remaining = 50 - 10 * sum(f"run-{n}" in left for n in runs)
        assert remaining >= 12.5, f"{name} keeps half of its quarter"
    assert len(left) == 6


@pytest.mark.parametrize(("department", "size"), [("", 10), ("dept/", 1)])
def test_correction_in_a_department_of_a_tenth_is_as_strong_as_at_the_top(
    cluster: Cluster, department: str, size: int
) -> None:
    """K9: one child used all that was its parent's, the other nothing; 100 GPUs at the top, 10 in the department."""
    cluster.hosts(10)
    if department:
        cluster.share("dept", 1)
        cluster.share("rest", 9)
        cluster.wait("w-rest", "rest", 90)
    for name in ("a", "b"):
        cluster.share(f"{department}{name}", 1)
        cluster.wait(f"w-{name}", f"{department}{name}", 100)
    cluster.use("used", f"{department}a", 10 * size, NOON - 8 * DAY, NOON - 1)
    found = by_account(cluster.cycle())
    issued = found[f"{department}a"]["issued_gpus"], found[f"{department}b"]["issued_gpus"]
    assert issued == {10: (6, 94), 1: (1, 9)}[size]  # 5.88 and 94.12 parts of a hundred, both times
    assert found[f"{department}a"]["ratio"] == f"{2 * (WEEK - 1) / (WEEK + 8 * HOUR):.6f}"


def test_a_project_over_its_share_takes_nothing_from_a_better_behaved_program(cluster: Cluster) -> None:
    """Program p as a whole is under-served, its project x used thrice its share; program q used less than p."""
    cluster.hosts(10)
    for name in ("p", "q", "r", "p/x", "p/y"):
        cluster.share(name, 1)
    cluster.use("x-old", "p/x", 20, NOON - 8 * DAY, NOON - 2 * HOUR)
    cluster.use("q-run", "q", 10, NOON - 8 * DAY, None, "h0")
    for n in range(1, 10):
        cluster.use(f"r-run-{n}", "r", 10, NOON - 8 * DAY, None, f"h{n}")
    cluster.wait("x-new", "p/x", 20)
    cluster.wait("y-new", "p/y", 20)
    record = cluster.cycle()
    ratios = {path: float(found["ratio"]) for path, found in by_account(record).items()}
    assert ratios["q"] < ratios["p"] < 1 < ratios["p/x"]
    left = {decision["workload"] for decision in decided(record, "preempt")}
    assert "q-run" not in left
    assert left <= {f"r-run-{n}" for n in range(1, 10)}
    # Inside p the project below its share is served first.
    order = [decision["workload"] for decision in record["decisions"]]
    assert order.index("y-new") < order.index("x-new")


def test_with_a_half_life_a_burst_fades_instead_of_leaving_the_window(cluster: Cluster) -> None:
    cluster.hosts(10)
    for name in ("a", "b"):
        cluster.share(name, 1)
    cluster.use("burst", "a", 100, NOON - 22 * DAY, NOON - 21 * DAY)
    assert cluster.account("a")["used_gpu_ms"] == 0
    cluster.set(mode="half-life")
    found = by_account(cluster.cycle())
    assert round(found["a"]["used_gpu_ms"] / GPU_HOUR, 1) == 285.6
    # 100 GPUs from the beginning weigh a half-life / ln 2; each account is entitled to half of that.
    assert round(found["b"]["entitled_gpu_ms"] / GPU_HOUR) == round(50 * 168 / 0.693147)
    assert found["a"]["entitled_gpu_ms"] == found["b"]["entitled_gpu_ms"]
    assert found["a"]["issued_gpus"] == found["b"]["issued_gpus"] == 0


def test_what_is_remembered_is_the_capacity_that_was_healthy(cluster: Cluster) -> None:
    cluster.hosts(1)
    cluster.tell(NOON - DAY, host.Registered(cluster="c", host="late", gpus=5, gpu_model="x"))
    cluster.share("a", 1)
    with reading(cluster.engine) as reader:
        past = read_past(reader, ["c"], NOON, PolicyConfig())
    assert past.capacity_gpu_ms == WEEK * 10_000 + DAY * 5_000
    assert past.entitled(["a"])["a"] == (past.capacity_gpu_ms, 0)


@pytest.mark.parametrize(
    ("unit", "cut", "used", "entitled"),
    [
        ("weighted", None, (192, 576), 384),
        ("physical", None, (192, 192), 192),
        ("weighted", NOON - DAY // 2, (192, 384), 288),
    ],
)
def test_use_and_entitlement_count_at_the_prices_of_their_time(
    cluster: Cluster, unit: str, cut: int | None, used: tuple[int, int], entitled: int
) -> None:
    """Equal shares; a had 8 GPUs of weight 1000 for a day, b 8 of weight 3000, which is cut to 1000 or is not."""
    for model in ("small", "large"):
        cluster.hosts(1, model=model, gpus=8, at_s=NOON - DAY)
    for name, model in (("a", "small"), ("b", "large")):
        cluster.share(name, 1)
        cluster.use(f"w-{name}", name, 8, NOON - DAY, NOON, gpu_model=model)
        for n in range(2):
            cluster.wait(f"v-{name}-{n}", name, 8)
    cluster.tell(0, budget.PolicyChanged(policy="rate_card", weights={"large": 3000}))
    if cut is not None:
        cluster.tell(cut, budget.PolicyChanged(policy="rate_card", weights={"large": 1000}))
    if unit != PolicyConfig().unit:
        cluster.set(unit=unit)
    found = by_account(cluster.cycle())
    assert (found["a"]["used_gpu_ms"], found["b"]["used_gpu_ms"]) == tuple(hours * GPU_HOUR for hours in used)
    assert found["a"]["entitled_gpu_ms"] == found["b"]["entitled_gpu_ms"] == entitled * GPU_HOUR
    issued = found["a"]["issued_gpus"], found["b"]["issued_gpus"]
    assert sum(issued) == 16
    assert (issued[0] > issued[1]) == (used[0] < used[1])


@pytest.mark.parametrize(("scope", "issued"), [("cluster", (5, 5)), ("clusters", (1, 9))])
def test_one_tree_over_clusters_counts_what_was_used_on_the_others(
    cluster: Cluster, scope: str, issued: tuple[int, int]
) -> None:
    """Two clusters of 10 GPUs; a had the other one for the week, b nothing; each may run its work on both."""
    for name in ("c", "d"):
        cluster.hosts(1, on=name)
    for name in ("a", "b"):
        cluster.share(name, 1)
        cluster.wait(f"w-{name}", name, 10, clusters=["c", "d"])
    cluster.use("all", "a", 10, NOON - 8 * DAY, None, "h0", cluster="d")
    cluster.set(scope=scope)
    record = cluster.cycle()
    found = by_account(record)
    assert record["supply_gpus"] == 10
    assert (found["a"]["issued_gpus"], found["b"]["issued_gpus"]) == issued
    # Each asks for 10 GPUs here, its first choice, and for none on the other.
    assert (found["a"]["demand_gpus"], found["b"]["demand_gpus"]) == (10, 10)
    other = issue_cycle(cluster.engine, "d", at_s=NOON, clock=CLOCK, calendar=Calendar(), dry_run=True)
    assert {path: row["demand_gpus"] for path, row in by_account(other).items()} == {"a": 10, "b": 0}
    assert [d["workload"] for d in other["decisions"]] == []


def test_fractions_of_gpus_are_divided_to_the_thousandth(cluster: Cluster) -> None:
    """Sevenths of a GPU, as MIG slices are: 142 and six times 143 thousandths."""
    cluster.hosts(1, gpus=1)
    for name, share in (("a", 2), ("b", 1)):
        cluster.share(name, share)
        cluster.wait(f"w-{name}", name, 0.857)
    cluster.use("used", "a", 0.142, NOON - 3 * HOUR, NOON - HOUR)
    cluster.use("runs", "b", 0.143, NOON - HOUR, None, "h0")
    record = cluster.cycle()
    found = by_account(record)
    assert found["a"]["used_gpu_ms"] == 2 * HOUR * 142
    assert (found["a"]["demand_gpus"], found["b"]["demand_gpus"]) == ("0.857", 1)
    issued = [row["issued_gpus"] for row in found.values()]
    assert sum(round(float(gpus) * 1000) for gpus in issued) == 1000
    assert all(isinstance(gpus, str) for gpus in issued)
    assert [d["hosts"] for d in decided(record, "start")] == [{"h0": 857}]


def test_what_was_given_back_for_a_failure_was_not_used(cluster: Cluster) -> None:
    """A run of 10 GPUs is stopped by a failure after five hours; it had saved nothing, and gets four hours back."""
    cluster.hosts(1)
    cluster.share("a", 1)
    cluster.use("w", "a", 10, NOON - DAY, None, "h0")
    stopped = NOON - DAY + 5 * HOUR
    cluster.tell(stopped, workload.Ended(cluster="c", workload="w", run="1", reason="NODE_FAIL"))
    assert cluster.account("a")["used_gpu_ms"] == 5 * 10 * GPU_HOUR
    given = incident.CreditGranted(cluster="c", workload="w", run="1", incident="i", cap_s=4 * HOUR)
    cluster.tell(stopped, given)
    assert cluster.account("a")["used_gpu_ms"] == 10 * GPU_HOUR
    # Half of what remains has left the window by then, and all that was given back is still in it.
    at_s = NOON + 6 * DAY + HOUR // 2
    assert cluster.account("a", at_s)["used_gpu_ms"] == 5 * GPU_HOUR


def test_what_was_given_back_to_a_run_that_shrank_counts_by_the_size_of_each_hour(cluster: Cluster) -> None:
    """As above, but it held only 2 GPUs in its last hour: it gets one hour of 2 back and three of 10."""
    cluster.hosts(1)
    cluster.share("a", 1)
    cluster.use("w", "a", 10, NOON - DAY, None, "h0")
    stopped = NOON - DAY + 5 * HOUR
    smaller = workload.Resized(cluster="c", workload="w", run="1", gpus_milli=2000, hosts=["h0"])
    cluster.tell(stopped - HOUR, smaller)
    cluster.tell(stopped, workload.Ended(cluster="c", workload="w", run="1", reason="NODE_FAIL"))
    given = incident.CreditGranted(cluster="c", workload="w", run="1", incident="i", cap_s=4 * HOUR)
    cluster.tell(stopped, given)
    assert cluster.account("a")["used_gpu_ms"] == 10 * GPU_HOUR
    assert cluster.account("a", NOON + 6 * DAY + HOUR // 2)["used_gpu_ms"] == 5 * GPU_HOUR


def test_credits_go_on_from_the_record_of_the_cycle_before(cluster: Cluster) -> None:
    """6 GPUs, a third each, alpha 1/2: x alone first, then all three; each cycle is a quantum of 15 minutes later."""
    cluster.hosts(1, gpus=6)
    cluster.set(division="credits")
    for name in ("x", "y", "z"):
        cluster.share(name, 1)
    cluster.wait("w-x", "x", 6)
    cluster.wait("w-y", "y", 6, NOON + 1000)
    cluster.wait("w-z", "z", 6, NOON + 1000)

    def issued(at_s: int) -> tuple[list[int], list[int]]:
        record = issue_cycle(cluster.engine, "c", at_s=at_s, clock=CLOCK, calendar=Calendar())
        rows = by_account(record)
        return (
            [rows[name]["issued_gpus"] for name in ("x", "y", "z")],
            [round(rows[name]["credits_gpu_ms"] / 900_000) for name in ("x", "y", "z")],
        )

    # Karma's own sequence (6, 0, 0), (6, 0, 0), (1, 3, 2), (1, 2, 3), with credits before each quantum.
    assert issued(NOON) == ([6, 0, 0], [0, 0, 0])
    assert issued(NOON + 900) == ([6, 0, 0], [-4, 2, 2])
    assert issued(NOON + 1800) == ([1, 3, 2], [-8, 4, 4])
    assert issued(NOON + 2700) == ([1, 2, 3], [-7, 3, 4])
    # An outage earns a quantum and no more.
    assert issued(NOON + DAY)[1] == [-6, 3, 3]


def test_nobody_has_credits_where_they_do_not_divide(cluster: Cluster) -> None:
    cluster.hosts(1)
    cluster.share("a", 1)
    assert "credits_gpu_ms" not in cluster.account("a")
