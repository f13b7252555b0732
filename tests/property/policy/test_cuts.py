"""The allocations do not depend on how the same use is cut into workloads, runs, segments and ticks."""

import datetime as dt
import random
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.ledger.test_laws import _database

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import host, workload
from gpuledger.events.budget import AccountCreated, ShareSet
from gpuledger.events.closing import LedgerTicked
from gpuledger.events.envelope import Event, book_of, make
from gpuledger.events.registry import Fact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, seconds
from gpuledger.ledger.append import append
from gpuledger.policy.cycle import Allocation, PolicyConfig, run_cycle
from gpuledger.policy.reading import read_state

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

few = settings(max_examples=max(settings().max_examples // 4, 5), deadline=None)
NOW = dt.datetime(2026, 11, 30, 21, 7, 30, tzinfo=dt.UTC)
AT_S, HOUR, DAY = seconds(NOW), 3600, 86_400
ACCOUNTS = ("org/a", "org/b/x", "org/b/y")
WHOLE, CUT = "whole", "cut"
CONFIGS = (PolicyConfig(window_s=DAY), PolicyConfig(mode="half-life", half_life_s=6 * HOUR))


class Use(NamedTuple):
    """GPUs that an account used, and where that is cut: how long after its beginning, and in which way."""

    account: str
    gpus: int
    age_s: int
    length_s: int
    cuts: dict[int, str]
    is_free: bool


lengths = st.integers(1, 30 * HOUR)
uses = st.builds(
    Use,
    account=st.sampled_from(ACCOUNTS),
    gpus=st.integers(1, 8),
    age_s=st.integers(0, 4 * HOUR),
    length_s=lengths,
    cuts=st.dictionaries(
        st.integers(1, 30 * HOUR),
        st.sampled_from(["workload", "run", "segment", "suspended", "tick"]),
        max_size=6,
    ),
    is_free=st.booleans(),
)


@pytest.fixture(scope="module")
def empty(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database that each example leaves as it found it."""
    yield from _database(postgres, template_database, "cuts")


def told(name: str, at_s: int, data: Fact) -> Event:
    return make(id=name, source="t", at_s=at_s, data=data)[0]


def facts(cluster: str, name: str, use: Use, *, is_cut: bool) -> Iterator[Event]:
    """Tell of use as one run, or cut; the GPUs, the account and the seconds are the same."""
    end_s = AT_S - use.age_s
    begin_s = end_s - use.length_s
    cuts = (
        {begin_s + after_s: how for after_s, how in use.cuts.items() if after_s < use.length_s}
        if is_cut
        else {}
    )
    current, run, hosts = f"{name}.0", 1, "h0"

    def about(**keys: object) -> dict[str, object]:
        return {"cluster": cluster, "workload": current, **keys}

    def begun(at_s: int) -> Iterator[Event]:
        if run == 1:
            asked = about(account=use.account, user="-", gpus_milli=use.gpus * 1000)
            minimum_s = 0 if use.is_free else HOUR
            yield told(f"{current}/s", at_s, workload.Submitted(minimum_runtime_s=minimum_s, **asked))  # type: ignore[arg-type]
        where = about(run=str(run), attempt=run, gpus_milli=use.gpus * 1000, hosts=[hosts])
        yield told(f"{current}/{run}/b", at_s, workload.Started(**where))  # type: ignore[arg-type]

    yield from begun(begin_s)
    for at_s, how in sorted(cuts.items()):
        of_run = about(run=str(run))
        match how:
            case "workload":
                yield told(f"{current}/{run}/e", at_s, workload.Ended(reason="completed", **of_run))  # type: ignore[arg-type]
                current, run = f"{name}.{at_s}", 1
                yield from begun(at_s)
            case "run":
                yield told(f"{current}/{run}/e", at_s, workload.Requeued(reason="by user", **of_run))  # type: ignore[arg-type]
                run += 1
                yield from begun(at_s)
            case "segment":
                hosts = "h1" if hosts == "h0" else "h0"
                moved = workload.Resized(gpus_milli=use.gpus * 1000, hosts=[hosts], **of_run)  # type: ignore[arg-type]
                yield told(f"{current}/{at_s}", at_s, moved)
            case "suspended":
                yield told(f"{current}/{at_s}/+", at_s, workload.Suspended(**of_run))  # type: ignore[arg-type]
                yield told(f"{current}/{at_s}/-", at_s + 1, workload.Resumed(**of_run))  # type: ignore[arg-type]
            case "tick":
                hour_s = at_s - at_s % HOUR
                yield told(f"{name}/{at_s}/t", hour_s, LedgerTicked(cluster=cluster))
    yield told(f"{current}/{run}/e", end_s, workload.Ended(reason="completed", **about(run=str(run))))  # type: ignore[arg-type]


def in_window(use: Use) -> int:
    """Return what a window of a day remembers of it, in gpu_ms."""
    return use.gpus * 1000 * max(min(use.age_s + use.length_s, DAY) - use.age_s, 0)


def allocations(reader: Reader, cluster: str, config: PolicyConfig) -> tuple[Allocation, ...]:
    """What a cycle issues to accounts that all wait for the same."""
    state = read_state(reader, cluster, AT_S, config)
    return run_cycle(state, config).allocations


@few
@given(
    drawn=st.lists(uses, max_size=5),
    shares=st.tuples(*(st.integers(0, 3) for _ in ACCOUNTS)),
    randomness=st.randoms(use_true_random=False),
)
def test_allocations_do_not_depend_on_how_use_is_cut(
    empty: sa.Engine, drawn: list[Use], shares: tuple[int, ...], randomness: random.Random
) -> None:
    with empty.connect() as connection, connection.begin() as transaction:
        writer = Writer(connection)
        events = [
            told(f"new/{name}", 0, AccountCreated(account=name)) for name in ("org", "org/b", *ACCOUNTS)
        ]
        events += [
            told(f"share/{name}", 0, ShareSet(account=name, share=share, reason="t", by="t"))
            for name, share in zip(ACCOUNTS, shares, strict=True)
        ]
        append(writer, "~org", events, clock=FixedClock(NOW), calendar=Calendar())
        for cluster in (WHOLE, CUT):
            events = [
                told(
                    f"{name}",
                    AT_S - 90 * DAY,
                    host.Registered(cluster=cluster, host=name, gpus=8, gpu_model="x"),
                )
                for name in ("h0", "h1")
            ]
            for n, use in enumerate(drawn):
                events += facts(cluster, f"u{n}", use, is_cut=cluster == CUT)
            for n, name in enumerate(ACCOUNTS):
                asked = workload.Submitted(
                    cluster=cluster,
                    workload=f"w{n}",
                    account=name,
                    user="-",
                    gpus_milli=8000,
                    minimum_runtime_s=HOUR,
                )
                events.append(told(f"w{n}", AT_S - n, asked))
            randomness.shuffle(events)
            cut_at = sorted({0, len(events), *(randomness.randint(0, len(events)) for _ in range(2))})
            for first, last in pairwise(cut_at):
                append(
                    writer,
                    book_of(events[0].data),
                    events[first:last],
                    clock=FixedClock(NOW),
                    calendar=Calendar(),
                )
        used = {
            found.account: found.used_gpu_ms for found in allocations(Reader(connection), WHOLE, CONFIGS[0])
        }
        for name in ACCOUNTS:
            assert used[name] == sum(
                in_window(use) for use in drawn if use.account == name and not use.is_free
            )
        for config in CONFIGS:
            assert allocations(Reader(connection), CUT, config) == allocations(
                Reader(connection), WHOLE, config
            )
        transaction.rollback()
