"""Use by a label and by host, against an oracle that looks at each second of each run and shares no code.

What was told of a run counts from its moment on, whether it cuts a segment or not; rows sum to the total to the unit;
and as of a recorded time a report says what was told by then.
"""

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.ledger.test_laws import _database, batches

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import workload
from gpuledger.events.envelope import Event, make
from gpuledger.events.registry import Fact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock
from gpuledger.ledger.append import append
from gpuledger.ledger.usage import UsageQuery, UsageReport, key_of, usage

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

few = settings(max_examples=settings().max_examples // 2, deadline=None)
EVE = dt.datetime(2026, 12, 1, tzinfo=dt.UTC)
NOW_S = 40
HOSTS = ("h1", "h2", "h3")
Cell = tuple[str, str]
"""A key, and what of its time is meant: ``closed`` or ``provisional``."""


class Size(NamedTuple):
    """What a run has from a moment on; of hosts that are not told nobody knows who gives what."""

    at_s: int
    hosts: tuple[str, ...]
    milli: int
    on_each: dict[str, int] | None

    def adds_up(self) -> bool:
        told = self.on_each or {}
        return sorted(told) == sorted(self.hosts) and sum(told.values()) == self.milli


class Run(NamedTuple):
    """A workload with one run.

    Args:
        labels: From when on -> what is told; the first with the submission, which may be missing.
        sizes: The start, and resizes after it.
    """

    name: str
    labels: dict[int, dict[str, str]]
    is_submitted: bool
    sizes: tuple[Size, ...]
    end_s: int | None

    def facts(self) -> Iterator[tuple[int, Fact]]:
        named: dict[str, Any] = {"cluster": "alpha", "workload": self.name}
        asked: dict[str, Any] = {"account": "org/a", "user": "ada", "gpus_milli": 1000}
        for number, (at_s, labels) in enumerate(self.labels.items()):
            if number:
                yield at_s, workload.Updated(**named, labels=labels)
            elif self.is_submitted:
                yield at_s, workload.Submitted(**named, **asked, labels=labels)
        for number, size in enumerate(self.sizes):
            given_: dict[str, Any] = {
                **named,
                "run": "r",
                "hosts": list(size.hosts),
                "gpus_milli": size.milli,
            }
            given_ |= {"host_gpus_milli": size.on_each} if size.on_each else {}
            yield (
                size.at_s,
                workload.Resized(**given_)
                if number
                else workload.Started(**given_, attempt=1, account="org/a"),
            )
        if self.end_s is not None:
            yield self.end_s, workload.Ended(**named, run="r", reason="done")


@st.composite
def sizes(draw: st.DrawFn, at_s: int) -> Size:
    hosts = draw(st.lists(st.sampled_from(HOSTS), max_size=3, unique=True))
    on_each = {host: draw(st.integers(0, 3)) for host in draw(st.permutations(hosts))}
    milli = sum(on_each.values()) or draw(st.integers(1, 4))
    match draw(st.sampled_from(["told", "told", "untold", "off by one", "not of all"])):
        case "untold":
            return Size(at_s, tuple(hosts), milli, None)
        case "off by one":
            return Size(at_s, tuple(hosts), milli + 1, on_each)
        case "not of all" if hosts:
            del on_each[hosts[0]]
            return Size(at_s, tuple(hosts), sum(on_each.values()) or milli, on_each)
        case _:
            return Size(at_s, tuple(hosts), milli, on_each)


@st.composite
def resized(draw: st.DrawFn, start_s: int, resizes: Sequence[int]) -> list[Size]:
    """A start and resizes of it; some of them tell of the same size that nobody knows where it is."""
    found = [draw(sizes(start_s))]
    for at_s in resizes:
        same = found[-1]._replace(at_s=at_s, on_each=None)
        found.append(draw(st.one_of(st.just(same), sizes(at_s))))
    return found


@st.composite
def runs(draw: st.DrawFn) -> list[Run]:
    moment, labels = (
        st.integers(0, 30),
        st.dictionaries(st.sampled_from("xy"), st.sampled_from(["a", "b", ""])),
    )
    found = []
    for number in range(draw(st.integers(1, 3))):
        start_s = draw(moment)
        resizes = sorted(draw(st.sets(st.integers(start_s + 1, start_s + 20), max_size=2)))
        told = sorted(draw(st.sets(moment, min_size=1, max_size=3)))
        found.append(
            Run(
                f"w{number}",
                {at_s: draw(labels) or {"x": "a"} for at_s in told},
                draw(st.sampled_from([True, True, True, False])),
                tuple(draw(resized(start_s, resizes))),
                draw(st.none() | st.integers(start_s, 35)),
            )
        )
    return found


def label_at(run: Run, at_s: int) -> str:
    """What label x says at a second: that of the submission before everything, then what was told of it last."""
    if not run.is_submitted:
        return "unknown"
    values = [labels["x"] for number, (from_s, labels) in enumerate(run.labels.items())
              if "x" in labels and (number == 0 or from_s <= at_s)]  # fmt: skip
    return (values or [""])[-1] or "unknown"


def expected(told: Sequence[Run], by: str, from_s: int, to_s: int) -> Counter[Cell]:
    """Count the milli-GPU of each second under its key; evenly where nobody told: the odd units to the first."""
    found, evenly = Counter[Cell](), Counter[tuple[tuple[str, ...], str]]()
    for run in told:
        state = "provisional" if run.end_s is None else "closed"
        for at_s in range(from_s, to_s):
            size = next((s for s in reversed(run.sizes) if s.at_s <= at_s), None)
            if size is None or (run.end_s is not None and at_s >= run.end_s):
                continue
            is_last = at_s >= run.sizes[-1].at_s or all(_same(s, size) for s in run.sizes if s.at_s > at_s)
            which = state if is_last else "closed"
            if by == "label:x":
                found[label_at(run, at_s), which] += size.milli
            elif size.adds_up():
                for host, milli in (size.on_each or {}).items():
                    found[host, which] += milli
            else:
                evenly[tuple(sorted(size.hosts)) or ("unknown",), which] += size.milli
    for (hosts, which), amount in evenly.items():
        for number, host in enumerate(hosts):
            found[host, which] += amount // len(hosts) + (number < amount % len(hosts))
    return Counter({cell: amount for cell, amount in found.items() if amount})


def _same(one: Size, other: Size) -> bool:
    """Whether a resize leaves the segment as it was."""
    return (one.milli, sorted(one.hosts)) == (other.milli, sorted(other.hosts))


def said(report: UsageReport) -> Counter[Cell]:
    cells = Counter[Cell]()
    for row in report.rows:
        cells[row.key, "closed"] += row.gpu_ms
        cells[row.key, "provisional"] += row.provisional_gpu_ms
    return Counter({cell: amount for cell, amount in cells.items() if amount})


@pytest.fixture(scope="module")
def empty(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database that each example leaves as it found it."""
    yield from _database(postgres, template_database, "spells_of_runs")


@pytest.mark.parametrize("by", ["label:x", "host"])
@few
@given(told=runs(), from_s=st.integers(0, 20), randomness=st.randoms(use_true_random=False))
def test_each_second_stands_under_what_was_told_of_it(
    empty: sa.Engine, by: str, told: list[Run], from_s: int, randomness: random.Random
) -> None:
    with empty.connect() as connection, connection.begin() as transaction:
        reader, writer, calendar = Reader(connection), Writer(connection), Calendar()
        now, remembered = EVE, []
        for run in told:  # as of the time after each run was told, only it and those before it are known
            events: list[Event] = [
                make(id=f"{run.name}/{number}", source="t", at_s=at_s, data=fact)[0]
                for number, (at_s, fact) in enumerate(run.facts())
            ]
            randomness.shuffle(events)
            for batch in batches(events, randomness):
                now += dt.timedelta(minutes=1)
                append(writer, "alpha", batch, clock=FixedClock(now), calendar=calendar)
            remembered.append(now + dt.timedelta(seconds=1))

        def asked(to_s: int = NOW_S, **query: object) -> UsageReport:
            question = UsageQuery(key_of(by), from_s=from_s, to_s=to_s, **query)  # type: ignore[arg-type]
            return usage(reader, question, NOW_S, calendar)

        reports = [asked(as_of=as_of) for as_of in remembered]
        now_report, earlier = asked(), asked(to_s=25)
        total = usage(reader, UsageQuery(key_of("cluster"), from_s=from_s), NOW_S, calendar)
        transaction.rollback()
    for known, report in enumerate(reports, 1):
        assert said(report) == expected(told[:known], by, from_s, NOW_S)
    assert said(now_report) == expected(told, by, from_s, NOW_S)
    assert said(earlier) == expected(told, by, from_s, 25)
    assert sum(row.gpu_ms for row in now_report.rows) == now_report.total_gpu_ms == total.total_gpu_ms
    assert now_report.provisional_gpu_ms == total.provisional_gpu_ms
