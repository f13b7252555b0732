"""Work that inner accounts own themselves: in every reading it is there once, under ``~own``, and all sums agree.

The oracle knows the tree as it is in the end, and who was given and used what; it shares no code with the product.
"""

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tests.property.ledger.test_laws import _database, batches

from gpuledger.api.app import create_app
from gpuledger.database.engine import writing
from gpuledger.events import budget, workload
from gpuledger.events.envelope import Event, make
from gpuledger.events.registry import Fact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock
from gpuledger.ledger.append import append

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

NOW = dt.datetime(2026, 12, 10, tzinfo=dt.UTC)
NOW_S, DAY, HOUR, GPU_HOUR = int(NOW.timestamp()), 86_400, 3600, 3_600_000
PERIOD = "2026-12"
NODES = ("", "/a", "/a/x", "/a/x/p", "/a/y", "/b", "/b/z")
"""The tree below a root; a node is there from the beginning or comes at some time, or never does."""

few = settings(max_examples=settings().max_examples // 3, deadline=None)
numbers = count(1)


class World(NamedTuple):
    """Which nodes there are, and who runs, is given and is limited to how many GPU-hours.

    ``runs`` have a node, GPU-hours and whether they name the node's child ``~own``.
    """

    nodes: tuple[str, ...]
    runs: tuple[tuple[str, int, bool], ...]
    grants: tuple[tuple[str, int], ...]
    limits: tuple[tuple[str, int], ...]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    ends = draw(st.lists(st.sampled_from(NODES), min_size=1, max_size=4))
    nodes = tuple(sorted({node[:at] for node in ends for at in (*_edges(node), len(node))}))
    some = st.sampled_from(nodes)
    return World(
        nodes,
        tuple(draw(st.lists(st.tuples(some, st.integers(1, 20), st.booleans()), max_size=5))),
        tuple(draw(st.lists(st.tuples(some, st.integers(1, 60)), max_size=4))),
        tuple(draw(st.lists(st.tuples(some, st.integers(1, 60)), max_size=3))),
    )


def _edges(node: str) -> Iterator[int]:
    return (at for at, letter in enumerate(node) if letter == "/")


def is_inner(world: World, node: str) -> bool:
    return any(other.startswith(node + "/") for other in world.nodes)


class Told(NamedTuple):
    """The facts of a world, for each of the two books."""

    tree: list[Event]
    cluster: list[Event]


def facts(world: World, cluster: str, randomness: random.Random) -> Told:
    def event(at_s: int, fact: Fact) -> Event:
        return make(id=f"e{next(numbers)}", source="test", at_s=at_s, data=fact)[0]

    tree = [event(0, budget.AccountCreated(account=cluster + node)) for node in world.nodes]
    randomness.shuffle(tree)
    told: list[Event] = []
    for number, (node, hours, names_own) in enumerate(world.runs):
        account = cluster + node + ("/~own" if names_own and is_inner(world, node) else "")
        named = {"cluster": cluster, "workload": f"w{number}"}
        told += [
            event(NOW_S - 5 * DAY, workload.Submitted(**named, account=account, user="ada", gpus_milli=1000)),
            event(
                NOW_S - 5 * DAY,
                workload.Started(**named, run="r", attempt=1, gpus_milli=1000, hosts=["h1"]),
            ),
            event(NOW_S - 5 * DAY + hours * HOUR, workload.Ended(**named, run="r", reason="done")),
        ]
    given_ = {"cluster": cluster, "period": PERIOD, "reason": "test", "by": "test"}
    for node, hours in world.grants:
        told.append(event(0, budget.Granted(account=cluster + node, gpu_ms=hours * GPU_HOUR, **given_)))
    for node, hours in world.limits:
        if is_inner(world, node):
            limit = budget.Granted(account=cluster + node, gpu_ms=hours * GPU_HOUR, limit=True, **given_)
            told.append(event(0, limit))
    return Told(tree, told)


class Oracle:
    """What must be read."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.used, self.given, self.caps = Counter[str](), Counter[str](), Counter[str]()
        for node, hours, _ in world.runs:
            self.used[node] += hours
        for node, hours in world.grants:
            self.given[node] += hours
        for node, hours in world.limits:
            if is_inner(world, node):
                self.caps[node] += hours

    def leaf(self, node: str) -> str:
        return node + "/~own" if is_inner(self.world, node) else node

    def below(self, amounts: Counter[str], node: str) -> int:
        return sum(hours for of, hours in amounts.items() if of == node or of.startswith(node + "/"))

    def available(self, node: str, own: int) -> int:
        rooms = [
            self.caps[above] - self.below(self.used, above)
            for above in self.caps
            if node == above or node.startswith(above + "/")
        ]
        return min([own, *rooms])


@pytest.fixture(scope="module")
def engine(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database for all examples; each has a cluster and a tree of its own in it."""
    yield from _database(postgres, template_database, "own_work_of_ledgers")


def live(engine: sa.Engine, told: Told, cluster: str, randomness: random.Random) -> None:
    """Book the facts of both books in batches, in any order of one to the other."""
    calls = [("~org", batch) for batch in batches(told.tree, randomness)]
    calls += [(cluster, batch) for batch in batches(told.cluster, randomness)]
    randomness.shuffle(calls)
    for book, batch in calls:
        with writing(engine) as writer:
            append(writer, book, batch, clock=FixedClock(NOW), calendar=Calendar())


@few
@example(
    World(("", "/a"), (("", 3, True), ("", 2, False), ("/a", 4, False)), (("", 10),), (("", 8),)),
    random.Random(1),
)
@given(world=worlds(), randomness=st.randoms(use_true_random=False))
def test_own_work_of_inner_accounts_is_read_once_everywhere(
    engine: sa.Engine, world: World, randomness: random.Random
) -> None:
    assume(world.runs or world.grants)  # else there is no such cluster
    cluster = f"c{next(numbers)}"
    live(engine, facts(world, cluster, randomness), cluster, randomness)
    oracle = Oracle(world)
    with TestClient(create_app(engine, FixedClock(NOW))) as api:

        def read(path: str, **parameters: str) -> dict[str, Any]:
            answer = api.get(f"/v1/{path}", params={"cluster": cluster, **parameters})
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            return found

        listed = {
            row["account"]: row
            for row in read("balances", period=PERIOD)["balances"]
            # A start that is told before its submission is booked to nobody's account, and taken back.
            if any(value for value in row.values() if isinstance(value, int))
        }
        used = {row["key"]: row["gpu_ms"] for row in read("usage")["rows"]}
        total = read("usage")["total_gpu_ms"]
        owners = {node for node in world.nodes if oracle.used[node] or oracle.given[node]}
        assert used == {cluster + oracle.leaf(node): hours * GPU_HOUR for node, hours in oracle.used.items()}
        assert total == sum(oracle.used.values()) * GPU_HOUR
        assert listed.keys() == {cluster + oracle.leaf(node) for node in owners}
        for node in owners:
            row = listed[cluster + oracle.leaf(node)]
            own = oracle.given[node] - oracle.used[node]
            assert row["granted_gpu_ms"] == oracle.given[node] * GPU_HOUR
            assert row["charged_gpu_ms"] == oracle.used[node] * GPU_HOUR
            assert row["own_available_gpu_ms"] == own * GPU_HOUR
            assert row["available_gpu_ms"] == oracle.available(node, own) * GPU_HOUR
        for node in world.nodes:
            if not any(owner == node or owner.startswith(node + "/") for owner in owners):
                continue
            row = read(f"balances/{cluster}{node}", period=PERIOD)
            parts = read("balances", period=PERIOD, account=cluster + node)["balances"]
            for name in ("granted_gpu_ms", "charged_gpu_ms", "held_gpu_ms", "own_available_gpu_ms"):
                assert row[name] == sum(part[name] for part in parts)
            given_, spent = oracle.below(oracle.given, node), oracle.below(oracle.used, node)
            assert (row["granted_gpu_ms"], row["charged_gpu_ms"]) == (given_ * GPU_HOUR, spent * GPU_HOUR)
            assert row["available_gpu_ms"] == oracle.available(node, given_ - spent) * GPU_HOUR
