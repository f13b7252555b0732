"""What people type where programs give reasons: kept aside, found by the name in it, and gone with an erasure."""

import msgspec
import pytest
from tests.integration.ledger.books import HOUR, Ledger, ended, registered, started, submitted, told
from tests.integration.ledger.forgetting import found, seen

from gpuledger.database.engine import reading, writing
from gpuledger.events.envelope import Event
from gpuledger.events.heartbeat import Gap, Heartbeat
from gpuledger.events.host import StateChanged
from gpuledger.events.workload import ClassChanged, Preempted
from gpuledger.kernel.clock import instant
from gpuledger.ledger.erasure import Erasure, erase, plan

ADA = "Ada Lovelace"
STATE = StateChanged(
    cluster="alpha", host="h1", gpus=8, gpu_model="H100", state="draining", reason="drain/ask-Ada Lovelace"
)


def events() -> list[Event]:
    """A run of Grace's that Ada is told to have moved and stopped, on a host that she took out."""
    gap = Gap(start=instant(0), end=instant(60), messages=3, reason=f"{ADA} pulled the plug")
    of_run = {"cluster": "alpha", "workload": "w1", "run": "r1"}
    return [
        told(0, registered("h1", 8), id="host"),
        told(0, submitted("w1", user="Grace Hopper", kind=f"demo for {ADA}"), id="submitted"),
        told(0, started("w1"), id="started"),
        told(60, STATE, id="drain"),
        told(60, Heartbeat(cluster="alpha", gaps=[gap]), id="gap"),
        told(90, ClassChanged(klass="unallocated", reason=f"asked by {ADA}", **of_run), id="class"),
        told(HOUR, Preempted(reason=f"PREEMPTED for {ADA}", exit=ADA, **of_run), id="preempted"),
        told(2 * HOUR, ended("w2", reason="cancelled by Ada Lovelace"), id="ended"),
    ]


def texts(ledger: Ledger) -> list[dict[str, str]]:
    return [msgspec.json.decode(body) for (body,) in ledger.rows("SELECT body FROM side.texts")]


@pytest.fixture
def booked(ledger: Ledger) -> Ledger:
    ledger.append(*events())
    return ledger


def test_the_journal_keeps_the_words_of_programs_and_the_side_store_the_rest(booked: Ledger) -> None:
    assert set(found(booked, b"Ada", b"Lovelace")) == {"side.texts.body"}
    kept = booked.rows(
        "SELECT event_id, coalesce(body->>'reason', body->>'kind') FROM ledger.journal ORDER BY 1"
    )
    assert {id_: reason for id_, reason in kept if reason} == {
        "class": "(aside)",
        "drain": "drain (aside)",
        "ended": "cancelled (aside)",
        "preempted": "PREEMPTED (aside)",
        "submitted": "(aside)",
    }
    assert (
        booked.value("SELECT body->'gaps'->0->>'reason' FROM ledger.journal WHERE event_id = 'gap'")
        == "(aside)"
    )
    body = booked.value(
        "SELECT t.body FROM side.texts AS t JOIN ledger.journal ON ref = extra_ref WHERE event_id = 'preempted'"
    )
    assert msgspec.json.decode(body) == {"reason": f"PREEMPTED for {ADA}", "exit": ADA}


def test_whoever_was_only_named_by_others_can_be_erased(booked: Ledger) -> None:
    before = seen(booked)
    with reading(booked.engine) as reader:
        planned = plan(reader, ADA)
    assert planned == Erasure(None, rows=0, texts=6)
    with writing(booked.engine) as writer:
        assert erase(writer, ADA) == planned
    assert found(booked, b"Ada", b"Lovelace") == []
    assert seen(booked) == before


def test_what_is_told_again_is_known_before_and_after_the_erasure(booked: Ledger) -> None:
    assert booked.append(*events()).accepted == []
    with writing(booked.engine) as writer:
        erase(writer, ADA)
    again = booked.append(*events())
    assert (again.accepted, again.repeated) == ([], len(events()))
    assert texts(booked) == []


def test_texts_that_name_nobody_of_that_name_stay(booked: Ledger) -> None:
    stays = msgspec.structs.replace(STATE, reason="drain/ask-Adam", state="unhealthy")
    booked.append(told(120, stays, id="other"))
    with writing(booked.engine) as writer:
        erase(writer, "Ada")
    assert texts(booked) == [{"reason": "drain/ask-Adam"}]


def test_nobody_can_confirm_a_text_with_the_digest_of_its_event(ledger: Ledger) -> None:
    digests = set()
    for said in ("ask-Ada", "ask-Grace"):
        drained = msgspec.structs.replace(STATE, reason=f"drain/{said}")
        ledger.append(told(60, drained, id="drain"))
        digests.add(bytes(ledger.value("SELECT digest FROM ledger.journal WHERE event_id = 'drain'")))
    assert len(digests) == 1
