"""What runs are given back, against a walk minute by minute from the words of the design."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.events import workload
from gpuledger.events.incident import CreditGranted, CreditReversed, CreditWithdrawn
from gpuledger.events.registry import Fact
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.charges import CREDIT, PHYSICAL, desired
from gpuledger.ledger.facts import Known
from gpuledger.ledger.segments import derive

MINUTE = 60
RUN = {"cluster": "c", "workload": "w", "run": "r"}
ORDINARY = ("completed", "TIMEOUT", "preempted")
REASONS = (*ORDINARY, "NODE_FAIL", "failed", "cancelled")

minutes = st.integers(0, 900)


class World(NamedTuple):
    """One run; minutes. Its end may be guessed first, its class and size change, its work be saved."""

    start: int
    guessed: tuple[int, str] | None
    ended: tuple[int, str]
    changes: dict[int, tuple[str, int]]
    saved: list[int]
    grants: list[tuple[str, int, int, int]]
    """(incident, noticed, basis, cap)."""
    withdrawals: list[tuple[str, int]]
    """(incident, basis)."""
    reversed: list[str]


names = st.sampled_from(["i1", "i2"])
ends = st.tuples(minutes, st.sampled_from(REASONS))
worlds = st.builds(
    World,
    start=st.integers(0, 300),
    guessed=st.none() | ends,
    ended=ends,
    changes=st.dictionaries(
        minutes, st.tuples(st.sampled_from(["allocated", "unallocated"]), st.sampled_from([1, 3])), max_size=4
    ),
    saved=st.lists(minutes, max_size=2),
    grants=st.lists(
        st.tuples(names, minutes, st.integers(0, 3), st.sampled_from([0, 30, 240])),
        max_size=3,
        unique_by=lambda grant: (grant[0], grant[2]),
    ),
    withdrawals=st.lists(st.tuples(names, st.integers(0, 3)), max_size=2, unique=True),
    reversed=st.lists(names, max_size=1),
)


def facts(world: World) -> list[tuple[int, Fact]]:
    named = {"cluster": "c", "workload": "w"}
    found: list[tuple[int, Fact]] = [
        (0, workload.Submitted(**named, account="org/a", user="ada", gpus_milli=8000)),
        (world.start, workload.Started(**RUN, attempt=1, gpus_milli=8000, hosts=["h1"])),
        (world.ended[0], workload.Ended(**RUN, reason=world.ended[1])),
    ]
    if world.guessed is not None:
        minute, reason = world.guessed
        found.append((minute, workload.Ended(**RUN, reason=reason, estimated=True)))
    for minute, (klass, gpus) in world.changes.items():
        found.append((minute, workload.ClassChanged(**RUN, klass=klass, reason="x")))  # type: ignore[arg-type]
        found.append((minute, workload.Resized(**RUN, gpus_milli=gpus * 1000, hosts=["h1"])))
    found += [(minute, workload.Checkpointed(**RUN)) for minute in world.saved]
    for incident, noticed, basis, cap in world.grants:
        found.append((noticed, CreditGranted(**RUN, incident=incident, cap_s=cap * MINUTE, basis=basis)))
    found += [(0, CreditWithdrawn(**RUN, incident=name, basis=basis)) for name, basis in world.withdrawals]
    found += [(0, CreditReversed(**RUN, incident=name, reason="x", by="ada")) for name in world.reversed]
    return found


def credited(world: World) -> int:
    """Return GPU-minutes: GPUs x min(charged occupancy, time since the last checkpoint or start, cap)."""
    end, reason = world.ended  # what was measured beats what was guessed
    if reason in ORDINARY:
        return 0
    standing: list[tuple[int, str, int]] = []
    for incident in {grant[0] for grant in world.grants} - set(world.reversed):
        mine = [grant for grant in world.grants if grant[0] == incident]
        newest = max(mine, key=lambda grant: grant[2])
        if not any(name == incident and basis >= newest[2] for name, basis in world.withdrawals):
            # It counts from when any conclusion that it ended the run says that it was noticed.
            standing.append((min(grant[1] for grant in mine), incident, newest[3]))
    if not standing:
        return 0
    cap = min(standing)[2]
    charged: list[int] = []
    gpus, klass = 8, "allocated"
    changes = sorted(world.changes.items())
    for minute in range(world.start, end):
        for at, (to_class, to_gpus) in changes:
            if at <= minute:
                klass, gpus = to_class, to_gpus
        if klass == "allocated":
            charged.append(gpus)
    since = max([world.start, *(at for at in world.saved if world.start <= at <= end)])
    length = min(len(charged), end - since, cap)
    return sum(charged[len(charged) - length :]) if length > 0 else 0


def given_back(known: Sequence[Known]) -> int:
    want = desired(derive(known), Calendar())
    amounts = {key.code: 0 for key in want}
    for key, amount in want.items():
        if key.commodity == PHYSICAL:
            amounts[key.code] += amount
    assert amounts.get(CREDIT, 0) <= amounts.get("charge", 0), "more was given back than was charged"
    return amounts.get(CREDIT, 0)


@settings(deadline=None)
@given(worlds, st.randoms(use_true_random=False))
def test_what_a_run_is_given_back_is_the_oracles_in_any_order(world: World, chance: random.Random) -> None:
    known = [
        Known(fact, minute * MINUTE, "test", msgspec.json.encode([n, fact]))
        for n, (minute, fact) in enumerate(facts(world))
    ]
    known += [fact for fact in known if chance.random() < 0.2]
    chance.shuffle(known)
    assert given_back(known) == credited(world) * 1000 * MINUTE
