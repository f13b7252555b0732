"""Only runs of which something is new are suspected of having lost their end, and none that has is missed."""

import random

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    HOUR,
    Ledger,
    at,
    ended,
    registered,
    started,
    submitted,
    told,
)
from tests.integration.ledger.samples import sampled

from gpuledger.database.engine import reading, writing
from gpuledger.events import host
from gpuledger.ledger import ticking
from gpuledger.ledger.evidence import lost_end_events
from gpuledger.ledger.suspects import NOWHERE, Looked, suspects

START = at("2026-11-20T00:00:00Z")
WEEK = 168 * HOUR


def suspected(ledger: Ledger, as_of_s: int, looked: Looked = NOWHERE) -> list[str]:
    with reading(ledger.engine) as reader:
        return suspects(reader, CLUSTER, as_of_s, START, looked)


@pytest.fixture
def looked(ledger: Ledger) -> Looked:
    """Four runs, two of them on one host and one with a limit, and a search ten hours later that found none lost."""
    ledger.append(told(START, registered("h1", 16)))
    for name, on, limit in (("w1", "h1", None), ("w2", "h1", None), ("w3", "h3", 20), ("w4", "h4", None)):
        ledger.append(told(START, submitted(name, time_limit_s=limit and limit * HOUR)))
        ledger.append(told(START, started(name, hosts=[on])))
    sampled(ledger, START, START + 10 * HOUR, "w4/r1", gpus="g4")
    return Looked(ledger.value("SELECT max(seq) FROM ledger.journal"), START + 10 * HOUR)


def test_everybody_is_suspected_at_first_and_nobody_while_nothing_is_new(
    ledger: Ledger, looked: Looked
) -> None:
    assert suspected(ledger, looked.at_s) == ["w1", "w2", "w3", "w4"]
    assert suspected(ledger, looked.at_s + HOUR, looked) == []


def test_a_limit_that_has_passed_and_samples_that_stopped_are_suspicious(
    ledger: Ledger, looked: Looked
) -> None:
    assert suspected(ledger, START + 12 * HOUR - 301, looked) == []
    assert suspected(ledger, START + 12 * HOUR, looked) == ["w4"]
    assert suspected(ledger, START + 20 * HOUR + 600, looked) == ["w3", "w4"]


def test_samples_of_a_number_that_was_given_twice_acquit_nobody(ledger: Ledger) -> None:
    """Hosts name runs by handles, and the newest bucket of a handle may be of the other run."""
    source = "slurm/west"
    ledger.append(told(START, started("7-100", "a"), source=source))
    sampled(ledger, START, START + 10 * HOUR, handle="job/7")
    after = Looked(ledger.value("SELECT max(seq) FROM ledger.journal"), START + 10 * HOUR)
    assert suspected(ledger, START + 11 * HOUR, after) == []
    assert suspected(ledger, START + 12 * HOUR, after) == ["7-100"]
    ledger.append(told(START + 10 * HOUR, started("7-200", "b", hosts=["h2"]), source=source))
    later = Looked(ledger.value("SELECT max(seq) FROM ledger.journal"), START + 10 * HOUR)
    assert suspected(ledger, START + 11 * HOUR, later) == ["7-100", "7-200"]


def test_whatever_comes_to_a_host_makes_its_runs_suspicious(ledger: Ledger, looked: Looked) -> None:
    ledger.append(told(START + 9 * HOUR, started("w5", hosts=["h3"])))
    assert suspected(ledger, START + 11 * HOUR, looked) == ["w3", "w5"]
    reboot = host.StateChanged(cluster=CLUSTER, host="h1", gpus=16, gpu_model="H100", reason="reboot")
    ledger.append(told(START + 3 * HOUR, reboot))
    assert suspected(ledger, START + 11 * HOUR, looked) == ["w1", "w2", "w3", "w5"]


def test_an_estimate_is_looked_at_again_when_something_is_known_of_it(ledger: Ledger, looked: Looked) -> None:
    ledger.append(*(told(START + HOUR, ended(name, estimated=True)) for name in ("w3", "w4")))
    after = Looked(ledger.value("SELECT max(seq) FROM ledger.journal"), looked.at_s)
    assert suspected(ledger, looked.at_s, after) == ["w4"]  # it was sampled since
    ledger.append(told(START + 2 * HOUR, ended("w3", estimated=True)))
    assert suspected(ledger, looked.at_s, after) == ["w3", "w4"]


@pytest.mark.parametrize("seed", range(3))
def test_a_search_that_follows_another_finds_what_one_from_scratch_finds(ledger: Ledger, seed: int) -> None:
    chance, lost = random.Random(seed), 0
    now_s, names = START, [f"w{n}" for n in range(8)]
    ledger.append(told(START, registered("h1", 8)), told(START, registered("h2", 8)))
    for number in range(20):
        name, on, at_s = chance.choice(names), f"h{chance.choice([1, 2])}", now_s - chance.randrange(3 * HOUR)
        match chance.randrange(5):
            case 0 | 1:
                ledger.append(told(at_s, submitted(name, time_limit_s=chance.choice([None, 5 * HOUR]))))
                ledger.append(told(at_s, started(name, hosts=[on], gpus_milli=chance.choice([4000, 8000]))))
            case 2:
                ledger.append(told(at_s, ended(name)))
            case 3:
                sampled(ledger, at_s, at_s + HOUR, f"{name}/r1", gpus=f"g{number}")
            case _:
                ledger.append(told(at_s, registered(on, chance.choice([4, 8]))))
        now_s += chance.choice([1, 1, 4]) * HOUR
        with reading(ledger.engine) as reader:
            whole = lost_end_events(reader, CLUSTER, as_of_s=now_s, since_s=max(0, now_s - WEEK))
        before = ledger.value("SELECT count(*) FROM ledger.journal WHERE source = 'gpuledger/lost-ends'")
        with writing(ledger.engine) as writer:
            done = ticking.tick(writer, CLUSTER, now_s, clock=ledger.clock, calendar=ledger.calendar)
        after = ledger.value("SELECT count(*) FROM ledger.journal WHERE source = 'gpuledger/lost-ends'")
        assert (done.lost_ends, after - before) == (len(whole), len(whole))
        lost += len(whole)
    assert lost, "nothing was lost: the story tries nothing"
