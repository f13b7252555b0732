"""What the policy decided for a workload, read back."""

from dataclasses import replace

import msgspec
from tests.integration.policy.worlds import CLOCK, NOON, World, event

from gpuledger.database.engine import detached, reading, reading_on, writing
from gpuledger.events import host
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger import cycle_decisions, cycles, queries, rebuild
from gpuledger.ledger.knobs import read_config
from gpuledger.policy.cycle import run_cycle
from gpuledger.policy.pieces import WITH_SENTENCES
from gpuledger.policy.reading import read_state
from gpuledger.policy.recorded import decision_of, whole
from gpuledger.policy.recording import Decided, record
from gpuledger.policy.replaying import replay
from gpuledger.policy.rules import RULES, UNNUMBERED


def test_the_decision_of_a_workload_is_that_of_the_newest_cycle_up_to_an_instant(world: World) -> None:
    early, late = world.cycle(), world.cycle(NOON + 60)
    with reading(world.engine) as reader:
        for at_s, record, decided_s in (
            (NOON + 3600, late, NOON + 60),
            (NOON + 59, early, NOON),
            (NOON + 60, late, NOON + 60),
        ):
            found = decision_of(reader, "c", "w-b8", at_s)
            assert found is not None
            (own,) = (d for d in record["decisions"] if d["workload"] == "w-b8")
            assert found == (record["cycle"], decided_s, own)
        assert decision_of(reader, "c", "w-b8", NOON - 1) is None


def test_a_workload_that_no_cycle_knew_has_no_decision(world: World) -> None:
    with reading(world.engine) as reader:
        assert decision_of(reader, "c", "w-b8", NOON) is None
    world.cycle()
    with reading(world.engine) as reader:
        assert decision_of(reader, "c", "nobody", NOON) is None


def test_decisions_that_are_kept_no_longer_are_made_again(world: World) -> None:
    published = world.cycle()
    with writing(world.engine) as writer:
        cycle_decisions.forget(writer, "c", NOON + 1, 0)
    with reading(world.engine) as reader:
        (own,) = (d for d in published["decisions"] if d["workload"] == "w-b8")
        assert decision_of(reader, "c", "w-b8", NOON) == (published["cycle"], NOON, own)
        found = cycles.latest(reader, "c", at_s=NOON)
        assert found is not None
        assert whole(reader, "c", found) == published


def test_a_cycle_of_an_earlier_release_replays_and_is_read_from_what_it_kept(world: World) -> None:
    """Its digest is of all sentences, and they are kept."""
    with detached(world.engine) as connection:
        with reading_on(connection) as reader:
            config = read_config(reader, "c", NOON)
            state, sequences = read_state(reader, "c", NOON, config), queries.sequences(reader)
        decided = Decided.of(state, config, sequences, run_cycle(state, config), form=WITH_SENTENCES)
    assert "form" not in msgspec.to_builtins(decided.issued)
    with writing(world.engine) as writer:
        record(writer, decided, clock=CLOCK, calendar=Calendar())
        newest = cycles.latest(writer, "c", at_s=NOON)
        assert newest is not None
        cycle_decisions.drop(writer, "c", newest.seq)
        sentences = [
            msgspec.json.encode(list(enumerate(decided.published["decisions"]))),
        ]
        cycle_decisions.keep(writer, "c", newest.seq, NOON, sentences)
    with reading(world.engine) as reader:
        assert rebuild.check(reader, Calendar()).ok
        assert replay(reader, decided.issued.cycle).ok
        assert whole(reader, "c", newest) == decided.published
        (own,) = (d for d in decided.published["decisions"] if d["workload"] == "w-b8")
        assert decision_of(reader, "c", "w-b8", NOON) == (decided.issued.cycle, NOON, own)
    with writing(world.engine) as writer:
        cycle_decisions.drop(writer, "c", newest.seq)
    with reading(world.engine) as reader:
        assert decision_of(reader, "c", "w-b8", NOON) == (decided.issued.cycle, NOON, own)


def test_what_other_rules_decided_is_not_taken_for_a_record_that_was_changed(world: World) -> None:
    """Before rules had numbers size classes went by the hosts that were up: here the largest is down."""
    down = host.StateChanged(cluster="c", host="h2", gpus=16, gpu_model="x", state="unhealthy")
    world.intake.take([event("down", NOON - 3600, down)])
    with detached(world.engine) as connection, reading_on(connection) as reader:
        config = read_config(reader, "c", NOON)
        state, sequences = read_state(reader, "c", NOON, config), queries.sequences(reader)
    assert state.largest_host_milli == 16_000
    before = replace(state, largest_host_milli=None)
    decided = Decided.of(before, config, sequences, run_cycle(before, config), rules=UNNUMBERED)
    assert "rules" not in msgspec.to_builtins(decided.issued)
    with writing(world.engine) as writer:
        record(writer, decided, clock=CLOCK, calendar=Calendar())
    with reading(world.engine) as reader:
        replayed = replay(reader, decided.issued.cycle)
    assert not replayed.ok
    assert replayed.verdict.startswith(
        f"decided before rules had numbers, and this program has version {RULES}, which decides otherwise: record."
    )
    assert replayed.verdict.endswith("audit verify says")
    assert (replayed.as_json()["rules"], replayed.as_json()["rules_here"]) == (UNNUMBERED, RULES)


def test_a_difference_under_the_same_rules_is_told_as_it_is(world: World) -> None:
    with detached(world.engine) as connection, reading_on(connection) as reader:
        config = read_config(reader, "c", NOON)
        state, sequences = read_state(reader, "c", NOON, config), queries.sequences(reader)
    decided = Decided.of(state, config, sequences, run_cycle(state, config))
    assert decided.issued.rules == RULES
    decided.issued.record["allocations"][0]["issued_gpus"] = 9
    with writing(world.engine) as writer:
        record(writer, decided, clock=CLOCK, calendar=Calendar())
    with reading(world.engine) as reader:
        replayed = replay(reader, decided.issued.cycle)
    assert not replayed.is_of_other_rules
    assert replayed.verdict == replayed.difference
    assert str(replayed.difference).startswith(
        "record.record.allocations[0].issued_gpus: recorded 9, replayed "
    )
