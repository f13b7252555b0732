"""When a run that nobody saw end must have been over: one row of a table per trap."""

import msgspec
import pytest

from gpuledger.events import host
from gpuledger.events import workload as events
from gpuledger.ledger.facts import Known
from gpuledger.ledger.inventory import HostFact
from gpuledger.ledger.lost_ends import (
    GRACE_S,
    REASON,
    SILENCE_S,
    SOURCE,
    TOLERANCE_S,
    Claim,
    Evidence,
    downs,
    ended_event,
    excludes,
    lost_end,
    revised_end,
    runs_of,
)

HOUR = 3600
START = 100 * HOUR
NOW = START + 1000 * HOUR
LIMIT = START + 24 * HOUR


def evidence(**known: int) -> Evidence:
    return Evidence(started_s=START, **known)


def claim(
    name: str = "a", from_s: int = START, milli: int = 8000, hosts: str = "h1", gpus: str = ""
) -> Claim:
    return Claim(name, "1", from_s, milli, frozenset(hosts.split()), frozenset(gpus.split()))


@pytest.mark.parametrize(
    ("known", "end_s"),
    [
        ({}, None),
        ({"seen_s": START + HOUR}, None),
        ({"limit_s": NOW}, None),
        ({"limit_s": NOW - GRACE_S + 1}, None),
        ({"limit_s": NOW - GRACE_S}, NOW - GRACE_S),
        ({"limit_s": LIMIT}, LIMIT),
        ({"limit_s": LIMIT, "seen_s": START + HOUR}, START + HOUR),
        ({"limit_s": LIMIT, "seen_s": LIMIT + HOUR}, LIMIT),
        ({"limit_s": NOW + HOUR, "taken_s": START + HOUR}, START + HOUR),
        ({"taken_s": START + 2 * HOUR, "down_s": START + HOUR}, START + HOUR),
        ({"taken_s": START + 2 * HOUR, "seen_s": START + HOUR}, START + HOUR),
        ({"taken_s": START + HOUR, "seen_s": START + HOUR + TOLERANCE_S}, START + HOUR),
        ({"taken_s": START + HOUR, "seen_s": START + HOUR + TOLERANCE_S + 1}, None),
        ({"down_s": START + HOUR, "seen_s": START + 2 * HOUR}, None),
        ({"down_s": START + HOUR, "taken_s": START + 9 * HOUR, "seen_s": START + 2 * HOUR}, START + 2 * HOUR),
        ({"taken_s": NOW + 1}, None),
        ({"seen_s": START + HOUR, "missed_s": SILENCE_S - 1}, None),
        ({"seen_s": START + HOUR, "missed_s": SILENCE_S}, START + HOUR),
        ({"seen_s": NOW + 1, "missed_s": SILENCE_S}, None),
        ({"seen_s": START - 5, "missed_s": SILENCE_S}, None),
        ({"seen_s": START - 5, "limit_s": LIMIT}, LIMIT),
        ({"seen_s": START, "limit_s": LIMIT}, LIMIT),
        ({"taken_s": START + 1}, START + 1),
        ({"limit_s": START + 1}, START + 1),
    ],
    ids=[
        "26: nothing is known, it may be alive",
        "seen alive and nothing against it",
        "its limit is not over",
        "its limit is over, the end may be on its way",
        "27: its limit is over for long enough",
        "27: never zero: without a sample the limit itself",
        "27: the last sample, before the limit",
        "44: samples go on after the limit, which caps",
        "27: the next run on its GPUs, before any limit",
        "27: the earliest of two bounds",
        "27: the last sample, before the next run",
        "10: clocks differ by a little",
        "35: it was seen after its GPUs were given away: they are shared, it lives",
        "a host that rebooted under a run that lives: the news of the reboot is wrong",
        "of two bounds the one that no sample refutes",
        "what will be known later is not known yet",
        "49: not missed for long enough",
        "27: its devices are sampled on, without it",
        "asked for an instant before its last sample",
        "10: a sample of another clock, before the start, is no sign of life",
        "10: nor does it make the end earlier than the start",
        "nor does one at the start",
        "the next run one second after the start",
        "a limit of one second",
    ],
)
def test_the_end_of_an_open_run(known: dict[str, int], end_s: int | None) -> None:
    assert lost_end(evidence(**known), NOW) == end_s


@pytest.mark.parametrize(
    ("known", "end_s"),
    [
        ({}, None),
        ({"seen_s": LIMIT}, None),
        ({"seen_s": LIMIT + 1}, LIMIT + 1),
        ({"seen_s": LIMIT + HOUR, "limit_s": LIMIT}, None),
        ({"seen_s": LIMIT + HOUR, "limit_s": LIMIT + 60}, LIMIT + 60),
        ({"seen_s": LIMIT + HOUR, "taken_s": LIMIT}, LIMIT + HOUR),
        ({"seen_s": LIMIT + HOUR, "taken_s": LIMIT + 60, "down_s": LIMIT + HOUR - 60}, LIMIT + HOUR - 60),
        ({"taken_s": LIMIT + HOUR}, None),
        ({"seen_s": NOW + HOUR}, NOW),
    ],
    ids=[
        "nothing new",
        "seen at the estimate",
        "seen after it",
        "never after the limit",
        "the limit was raised",
        "the bound is refuted",
        "another bound still holds",
        "a bound alone says nothing of life",
        "not beyond the instant that is asked for",
    ],
)
def test_an_estimate_is_moved_only_by_evidence_of_later_life(
    known: dict[str, int], end_s: int | None
) -> None:
    assert revised_end(evidence(**known), LIMIT, NOW) == end_s


@pytest.mark.parametrize(
    ("held", "later", "excluded"),
    [
        (claim(gpus="g1 g2", milli=2000), claim("b", START + 1, 1000, gpus="g2"), True),
        (claim(gpus="g1 g2", milli=2000), claim("b", START + 1, 1000, gpus="g3"), False),
        (claim(gpus="g1", milli=500), claim("b", START + 1, 500, gpus="g1"), False),
        (claim(gpus="g1", milli=500), claim("b", START + 1, 501, gpus="g1"), True),
        (claim(gpus="g1 g2", milli=2000), claim("b", START + 1, 1, gpus="g1"), True),
        (claim(gpus="0", milli=1000), claim("b", START + 1, 1000, hosts="h2", gpus="0"), False),
        (claim(gpus="g1", milli=1000), claim("b", START, 1000, gpus="g1"), False),
        (claim(gpus="g1", milli=1000), claim("b", START - 1, 1000, gpus="g1"), False),
        (claim(milli=4000), claim("b", START + 1, 4000), False),
        (claim(milli=4000), claim("b", START + 1, 4001), True),
        (claim(milli=4000, gpus="g1 g2 g3 g4"), claim("b", START + 1, 5000), True),
        (claim(milli=4000), claim("b", START + 1, 8000, hosts="h2"), False),
        (claim(milli=8000, hosts="h9"), claim("b", START + 1, 8000, hosts="h9"), False),
        (claim(milli=16_000, hosts="h1 h2"), claim("b", START + 1, 1), True),
        (claim(milli=9000, hosts="h1 h2"), claim("b", START + 1, 7000), False),
        (claim(milli=9000, hosts="h1 h2"), claim("b", START + 1, 7001, hosts="h2"), True),
        (claim(milli=16_000, hosts="h1 h9"), claim("b", START + 1, 8000), False),
        (claim(milli=8000, hosts=""), claim("b", START + 1, 8000), False),
    ],
    ids=[
        "a device of it was given away",
        "other devices of the same host",
        "19: two halves of one device",
        "19: more than what was left of the device",
        "19: a slice of a device that was held whole",
        "50: an index that two hosts have",
        "two that start together",
        "one that started before",
        "the host has room for both",
        "it has not",
        "the devices of one are not known, the host decides",
        "another host",
        "a host that nobody registered",
        "a gang that fills its hosts",
        "a gang that may have had one GPU there",
        "a gang that had at least one GPU there",
        "a gang on a host of unknown size besides",
        "hosts that are not known",
    ],
)
def test_what_cannot_be_held_at_once(held: Claim, later: Claim, excluded: bool) -> None:  # noqa: FBT001
    assert excludes(held, later, {"h1": 8000, "h2": 8000}) is excluded


def told(at_s: int, kind: type[host.HostFact], source: str = "slurm", **keys: str) -> HostFact:
    data = kind(cluster="c", host="h1", gpus=8, gpu_model="H100", **keys)  # type: ignore[arg-type]
    return HostFact(data, Known(data, at_s, source, b""))


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([], []),
        ([told(5, host.Registered)], []),
        ([told(9, host.Registered), told(5, host.Registered)], [9]),
        ([told(5, host.Registered), told(9, host.Registered, "nvml")], []),
        ([told(5, host.Registered, "gpuledger/inventory-file"), told(9, host.Registered)], []),
        ([told(n, host.Registered, "gpuledger/inventory-file") for n in (5, 9)], []),
        ([told(7, host.Retired, "gpuledger/inventory-file")], [7]),
        ([told(7, host.StateChanged, reason="reboot"), told(8, host.StateChanged, reason="Reboot")], [7, 8]),
        ([told(7, host.StateChanged, reason="xid-79", state="unhealthy"), told(8, host.StateChanged)], []),
    ],
    ids=[
        "nothing",
        "the first registration",
        "registered anew",
        "another source sees it for the first time",
        "declared, then seen for the first time",
        "an inventory that was corrected reboots nothing",
        "taken away",
        "rebooted",
        "unhealthy is not gone",
    ],
)
def test_when_nothing_can_have_survived_on_a_host(facts: list[HostFact], expected: list[int]) -> None:
    assert downs(facts) == expected


def known(at_s: int, fact: events.WorkloadFact, source: str = "slurm") -> Known:
    return Known(fact, at_s, source, msgspec.json.encode(fact))


NAMED = {"cluster": "c", "workload": "w"}
SUBMITTED = known(0, events.Submitted(**NAMED, account="org/a", user="u", gpus_milli=8000, time_limit_s=7200))
STARTED = known(
    START,
    events.Started(**NAMED, run="1", attempt=1, gpus_milli=2000, hosts=["h1"], gpu_uuids=["g1", "g2"]),
)


def test_a_run_is_read_from_its_facts() -> None:
    (run,) = runs_of([STARTED, SUBMITTED])
    assert run.start == run.now == Claim("w", "1", START, 2000, frozenset({"h1"}), frozenset({"g1", "g2"}))
    assert (run.limit_s, run.spoke_s, run.suspended) == (START + 7200, None, False)
    assert (run.ended_s, run.guessed) == (None, False)


def test_without_a_start_there_is_no_run_and_a_limit_of_zero_is_none() -> None:
    assert runs_of([SUBMITTED, known(9, events.Ready(**NAMED, run="1"))]) == []
    unlimited = known(0, msgspec.structs.replace(SUBMITTED.data, time_limit_s=0))
    (run,) = runs_of([unlimited, STARTED])
    assert run.limit_s is None


def test_a_resized_run_holds_other_gpus_whose_devices_nobody_tells() -> None:
    (run,) = runs_of(
        [
            STARTED,
            known(START + 20, events.Resized(**NAMED, run="1", gpus_milli=4000, hosts=["h1", "h2"])),
            known(START + 10, events.Resized(**NAMED, run="1", gpus_milli=1000, hosts=["h1"])),
        ]
    )
    assert run.now == Claim("w", "1", START + 20, 4000, frozenset({"h1", "h2"}), frozenset())
    assert run.start.gpus_milli == 2000


def test_its_own_facts_are_signs_of_life_and_what_the_policy_says_is_none() -> None:
    facts = [
        STARTED,
        known(START + 60, events.Checkpointed(**NAMED, run="1")),
        known(START + 90, events.ClassChanged(**NAMED, run="1", klass="unallocated", reason="over")),
        known(START - 10, events.Ready(**NAMED, run="1")),
    ]
    assert runs_of(facts)[0].spoke_s == START + 60


@pytest.mark.parametrize(("resumed_s", "suspended"), [(START + 5, True), (START + 15, False)])
def test_a_run_that_was_suspended_last_is_suspended(resumed_s: int, suspended: bool) -> None:  # noqa: FBT001
    facts = [
        STARTED,
        known(resumed_s, events.Resumed(**NAMED, run="1")),
        known(START + 10, events.Suspended(**NAMED, run="1")),
    ]
    assert runs_of(facts)[0].suspended is suspended


@pytest.mark.parametrize(
    ("source", "estimated", "guessed"), [(SOURCE, True, True), ("slurm", True, False), ("slurm", None, False)]
)
def test_an_end_that_counts_is_told_from_a_guess_of_this_module(
    source: str,
    estimated: bool | None,  # noqa: FBT001
    guessed: bool,  # noqa: FBT001
) -> None:
    end = known(START + 9, events.Ended(**NAMED, run="1", reason="x", estimated=estimated), source)
    (run,) = runs_of([STARTED, end])
    assert (run.ended_s, run.guessed) == (START + 9, guessed)


def test_the_estimate_is_an_event_that_says_so() -> None:
    (run,) = runs_of([STARTED])
    event = ended_event("c", run, START + 9)
    assert event == ended_event("c", run, START + 9)
    assert (event.id, event.source, event.at_s) == (f"w/1/{START + 9}", SOURCE, START + 9)
    assert event.data == events.Ended(**NAMED, run="1", reason=REASON, estimated=True)
