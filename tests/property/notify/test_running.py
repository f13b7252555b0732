"""Each crossing exactly once: under any course of figures, with any number of senders, kills and restarts.

The oracle knows neither table nor id: it goes over the same course with a set of what is known.
"""

import datetime as dt
from collections.abc import Iterator
from fractions import Fraction

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.integration.notify.spending import Inbox, notifier, roll_up, webhook

from gpuledger.database.engine import make_engine
from gpuledger.kernel.clock import FixedClock
from gpuledger.notify import running
from gpuledger.notify.notices import read_body
from gpuledger.notify.payloads import BudgetThreshold
from gpuledger.notify.sending import Message, Undelivered

NOW = dt.datetime(2026, 12, 3, 12, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
LEAVES = ("org/a", "org/b/x", "org/b/y", "lone")
THRESHOLDS = (50, 80, 100)

Node = tuple[str, str]
"""Account and period."""


class Killed(BaseException):
    """The process is gone; nothing in it gets to say anything."""


figures = st.tuples(
    st.sampled_from(LEAVES),
    st.sampled_from(["2026-12", "2026-11"]),
    st.integers(-20, 260),
    st.sampled_from([0, 70, 100, 101]),
)
look = st.sampled_from(["none", "dry", "look", "look", "refused", "killed before", "killed after", "twice"])
courses = st.lists(st.tuples(st.lists(figures, max_size=4), look), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def engine(postgres: object, template_database: str) -> Iterator[sa.Engine]:
    """One database for all courses; each begins with empty tables."""
    from tests.conftest import new_database

    with new_database(postgres, template_database) as url:  # type: ignore[arg-type]
        found = make_engine(url)
        yield found
        found.dispose()


class Oracle:
    """What is to arrive, from figures alone."""

    def __init__(self) -> None:
        self.rows: dict[Node, tuple[int, int]] = {}
        self.known: set[tuple[Node, int]] = set()
        self.expected: list[tuple[Node, int]] = []

    def look(self) -> None:
        """Come to know what holds: of a node the highest is told, if it was not known."""
        nodes: dict[Node, list[tuple[int, int]]] = {}
        for (account, period), figures in self.rows.items():
            parts = account.split("/")
            for depth in range(len(parts)):
                nodes.setdefault(("/".join(parts[: depth + 1]), period), []).append(figures)
        for node, found in nodes.items():
            budget = sum(budget for _, budget in found)
            if budget <= 0:
                continue
            part = Fraction(sum(charged for charged, _ in found), budget)
            holds = [each for each in THRESHOLDS if part >= Fraction(each, 100)]
            if holds and (node, holds[-1]) not in self.known:
                self.expected.append((node, holds[-1]))
            self.known |= {(node, each) for each in holds}


def crossing(message: Message) -> tuple[Node, int]:
    _, _, data = read_body(message.body)
    assert isinstance(data, BudgetThreshold)
    return (data.account, data.period), data.threshold_percent


def act(url: str, how: str, clock: FixedClock, arrived: list[Message]) -> None:
    """Look once, as a process of its own, which ends in one of several ways."""
    inbox = Inbox()

    def before(message: Message) -> None:
        if how == "killed before":
            raise Killed
        if how == "killed after":
            arrived.append(message)
            raise Killed

    inbox.before = before
    inbox.faults = [Undelivered("answers 500")] * 2 if how == "refused" else []
    own = notifier(url, clock, inbox, webhook("all"))
    try:
        for _ in range(2 if how == "twice" else 1):
            running.run(own, send=how != "dry")
    except Killed:
        pass
    finally:
        own.engine.dispose()
    taken = {notice for _, notice in inbox.got}
    arrived += [message for message in inbox.tried if message.id in taken]


@given(courses)
@settings(max_examples=max(settings().max_examples // 4, 10))
def test_each_crossing_arrives_once_unless_a_process_died_before_it_could_say_so(
    engine: sa.Engine, course: list[tuple[list[tuple[str, str, int, int]], str]]
) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("TRUNCATE notify.deliveries, notify.notices, warehouse.budget_vs_actual")
    url = engine.url.render_as_string(hide_password=False)
    oracle, clock, arrived = Oracle(), FixedClock(NOW), list[Message]()
    for changes, how in [*course, ([], "look")]:
        for account, period, charged, budget in changes:
            roll_up(engine, account, charged, budget=budget, period=period)
            oracle.rows[account, period] = (charged, budget)
        if how != "none":
            act(url, how, clock, arrived)
            if how != "dry":
                oracle.look()
        clock.at += HOUR
    for _ in range(3):  # what was refused comes later, a day at most
        clock.at += 24 * HOUR
        act(url, "look", clock, arrived)
    told = {message.id: crossing(message) for message in arrived}
    assert sorted(told.values()) == sorted(oracle.expected), "each crossing under one id, and nothing else"
    deaths = sum(how == "killed after" for _, how in course)
    assert len(arrived) - len(told) <= deaths, (
        "a second time only where a process died between sending and saying so"
    )
    assert len({(message.id, message.body) for message in arrived}) == len(told), "the same bytes each time"
