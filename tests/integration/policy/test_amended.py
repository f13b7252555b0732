"""What was amended: told to every reader, replayed, published, and written by who leads alone."""

import pytest
from tests.integration.policy.led import Led, a_share, an_end, cycles_of
from tests.integration.policy.worlds import NOON

from gpuledger.database.engine import reading, writing
from gpuledger.events.envelope import decode
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Fenced
from gpuledger.ledger import audit, cycles, outbox, policy_status, rebuild
from gpuledger.policy.amending import amend
from gpuledger.policy.kept import latest_cycle
from gpuledger.policy.reading import read_state
from gpuledger.policy.recorded import decision_of
from gpuledger.policy.recording import record_amendment
from gpuledger.policy.replaying import replay
from gpuledger.policy.state import PolicyConfig


def test_every_reader_is_told_the_newest_word(led: Led) -> None:
    led.submit("w-wide", 12)
    led.submit("w-debug", 1)
    led.turn()
    base, (said,) = led.word().issued, led.word().amendments
    with reading(led.engine) as reader:
        found = latest_cycle(reader, "c", at_s=led.now_s)
        assert found is not None
        assert found["amendments"] == [said.id]
        assert found["cycle"] == base.id
        assert found["allocations"] == base.issued.record["allocations"]
        assert found["reservations"] == said.amended.record["reservations"]
        told = {d["workload"]: d["action"] for d in found["decisions"]}
        assert told == {
            "w-a": "start", "w-b": "start", "w-large": "wait", "w-wide": "wait", "w-debug": "start"
        }  # fmt: skip
        few = latest_cycle(reader, "c", at_s=led.now_s, waiting_max=0)
        assert few is not None
        assert {d["workload"] for d in few["decisions"]} == told.keys() - {"w-large"}
        assert latest_cycle(reader, "c", at_s=NOON) == {
            **base.issued.record, "decisions": [d for d in found["decisions"] if d["workload"] in
                                                ("w-a", "w-b", "w-large")],
        }  # fmt: skip
        for name, where in (("w-debug", said), ("w-wide", said), ("w-large", base)):
            own = decision_of(reader, "c", name, led.now_s)
            assert own is not None
            assert (own.cycle, own.at_s) == (where.id, where.at_s)
            assert own.decision["workload"] == name
        assert decision_of(reader, "c", "w-debug", NOON) is None
        state = read_state(reader, "c", led.now_s, PolicyConfig())
        assert [kept.workload for kept in state.reservations] == [
            kept["workload"] for kept in said.amended.record["reservations"]
        ]
        (status,) = policy_status.read(reader)
        assert (status.cycles, status.amendments) == (1, 1)


def test_amendments_are_replayed_and_published_and_nothing_forges_them(led: Led) -> None:
    led.submit("w-1", 1)
    led.turn()
    led.submit("w-2", 2)
    led.submit("w-3", 1)
    led.process._led["c"].answered = 0.0
    led.turn()
    an_end(led)
    a_share(led)
    led.turn(60)
    ids = [said.id for said in cycles_of(led)]
    assert len(ids) == 2
    with reading(led.engine) as reader:
        for name in (*ids, *(found.cycle for found in issued_of(led))):
            assert replay(reader, name).difference is None
        assert audit.verify(reader).ok
        assert rebuild.check(reader, Calendar()).ok
    with writing(led.engine) as writer:
        names = [decode(queued.value).id for queued in outbox.waiting(writer, 10)]
    assert [name for name in names if name.removeprefix("cycle/") in ids] == [f"cycle/{one}" for one in ids]


def test_a_replay_names_what_an_amendment_says_otherwise(led: Led) -> None:
    base = led.process._led["c"].base
    assert base is not None
    led.submit("w-1", 1)
    with reading(led.engine) as reader:
        found = amend(reader, base, NOON + 1)
    assert found is not None
    assert found.fact is not None
    found.fact.record["decisions"][0]["hosts"] = {"h9": 1000}
    with writing(led.engine) as writer:
        assert record_amendment(
            writer, found.fact, (), base.cycles, at_s=NOON + 1, clock=led.clock, calendar=Calendar()
        )
    with reading(led.engine) as reader:
        difference = replay(reader, found.fact.cycle).difference
    assert difference == "record.record.decisions[0].hosts.h9: recorded 1000, replayed null"


def issued_of(led: Led) -> list[cycles.Named]:
    with reading(led.engine) as reader:
        found = [cycles.named(reader, "c", NOON), cycles.named(reader, "c", led.now_s)]
    return [one for one in found if one is not None]


def test_who_has_lost_the_lock_amends_nothing(led: Led) -> None:
    base = led.process._led["c"].base
    assert base is not None
    led.submit("w-debug", 1)
    led.connection.exec_driver_sql("SELECT pg_advisory_unlock_all()")
    led.connection.commit()
    with pytest.raises(Fenced):
        led.process._issuing(led.connection).amend(base, NOON + 1)
    assert led.recorded == [("issued", 0)]


def test_what_was_amended_meanwhile_is_not_amended_from_what_was_before(led: Led) -> None:
    base = led.process._led["c"].base
    assert base is not None
    led.submit("w-1", 1)
    led.turn()
    led.submit("w-2", 1)
    assert led.process._issuing(led.connection).amend(base, NOON + 2) is None
    assert led.recorded == [("issued", 0), ("amended", 1)]


def test_who_takes_over_begins_with_a_full_cycle(led: Led) -> None:
    led.submit("w-1", 1)
    led.turn()
    led.process._led.clear()
    led.turn()
    assert led.recorded == [("issued", 0), ("amended", 1), ("issued", 2)]
    assert not led.word().amendments
