"""Each step leaves what the next one needs, changes nothing the second time, and stops where something is wrong."""

import datetime as dt
from pathlib import Path

import pytest
from tests.integration.close.closing import NOVEMBER, SILENT, TENTH, Books
from tests.integration.ledger.books import CLUSTER, HOUR, at, run_of, tampering, told

from gpuledger.close import files, steps
from gpuledger.close.steps import Stopped, Verdict, closer_by
from gpuledger.events.heartbeat import Heartbeat
from gpuledger.kernel.errors import Conflict, Corrupt, Refused, Unavailable
from gpuledger.reconcile.comparison import Amounts, Class, Difference, RunKey
from gpuledger.reconcile.reconciling import Reconciliation
from gpuledger.settings import Settings


def compared(klass: Class) -> Reconciliation:
    found, key = Reconciliation(), RunKey(CLUSTER, "w1", "r1")
    found.amounts[key] = Amounts(5, 6)
    found.differences[key] = Difference(klass, key, 5, 6, "the record has more")
    return found


def types(books: Books) -> list[str]:
    rows = books.ledger.rows("SELECT type FROM ledger.journal WHERE type LIKE 'period.%' ORDER BY book, seq")
    return [type_ for (type_,) in rows]


def test_who_closes_waits_for_as_long_as_the_settings_say_unless_told_otherwise(
    books: Books, tmp_path: Path
) -> None:
    config, engine = Settings(home=tmp_path, close_grace_hours=6), books.ledger.engine
    found = closer_by(config, engine, CLUSTER, NOVEMBER, "ada")
    assert (found.by, found.root, found.grace_s) == ("ada", tmp_path / "closes", 6 * HOUR)
    assert closer_by(config, engine, CLUSTER, NOVEMBER, "ada", grace_hours=0).grace_s == 0


def test_each_step_says_how_far_the_close_has_come(books: Books) -> None:
    closer = books.closer()
    rows = steps.freeze(closer)
    assert (books.stored()["state"], types(books)) == ("frozen", ["period.closing"])
    told_of = steps.reconcile(closer, lambda: compared(Class.LATE))
    steps.settle(closer, rows.version, told_of)
    assert (books.stored()["state"], books.stored()["unexplained_runs"]) == ("settled", 0)
    steps.validate(closer, rows.version, lambda _: Verdict(7, ()))
    assert (books.stored()["state"], books.stored()["checks"]) == ("validated", 7)
    digest = steps.seal(closer, rows.version)
    stored = books.stored()
    assert (stored["state"], stored["digest"]) == ("sealed", digest)
    assert stored["document"].encode() == books.made().content
    published = steps.publish(closer, rows.version)
    assert books.stored()["state"] == "published"
    assert files.read(published.folder / "close.json") == books.made().content
    assert types(books) == ["period.closing", "period.closed", "period.sealed"]
    assert books.stored()["silent_sources"] == 1


def test_a_step_done_again_writes_no_row(books: Books) -> None:
    closer = books.closer()
    for again in range(3):
        rows = steps.freeze(closer)
        steps.settle(closer, rows.version, None)
        steps.validate(closer, rows.version, None)
        digest = steps.seal(closer, rows.version)
        steps.publish(closer, rows.version)
        assert types(books) == ["period.closing", "period.closed", "period.sealed"], again
        assert books.made().rows.digest == digest
    assert books.stored()["state"] == "published"


def test_rows_of_the_warehouse_that_were_lost_come_back(books: Books) -> None:
    books.close()
    stored, lines = books.stored(), books.ledger.rows("SELECT * FROM warehouse.statement ORDER BY account")
    books.ledger.change("DELETE FROM warehouse.close", "DELETE FROM warehouse.statement")
    assert books.close().repeated
    again = books.stored()
    assert {**again, "published_at": None, "checks": None} == {**stored, "published_at": None, "checks": None}
    assert books.ledger.rows("SELECT * FROM warehouse.statement ORDER BY account") == lines


def test_a_difference_without_a_cause_stops_it_before_anything_is_shut(books: Books) -> None:
    with pytest.raises(Stopped, match="1 of 1 runs differ") as stopped:
        books.close(compare=lambda: compared(Class.LOST))
    assert stopped.value.findings == ("lost-event: w1 r1 the record has more",)
    assert types(books) == []
    outcome = books.close(compare=lambda: compared(Class.LOST), accept=True)
    assert outcome.rows.reconciled is not None
    assert outcome.rows.reconciled.differences == {"lost-event": 1}
    assert books.made().document.reconciled == outcome.rows.reconciled


def test_what_a_gate_finds_is_not_sealed_until_it_holds(books: Books) -> None:
    with pytest.raises(Stopped, match="does not hold") as stopped:
        books.close(gate=lambda _: Verdict(3, ("nothing is odd: it is",)))
    assert stopped.value.findings == ("nothing is odd: it is",)
    assert types(books) == ["period.closing", "period.closed"]
    assert books.close(gate=lambda _: Verdict(3, ())).checks == 3
    assert types(books) == ["period.closing", "period.closed", "period.sealed"]


def test_a_statement_that_was_changed_before_the_seal_is_found(books: Books) -> None:
    closer = books.closer()
    rows = steps.freeze(closer)
    steps.settle(closer, rows.version, None)
    books.ledger.change(
        "UPDATE warehouse.statement SET charged_gpu_ms_weighted = charged_gpu_ms_weighted + 1"
    )
    with pytest.raises(Stopped) as stopped:
        steps.validate(closer, rows.version, None)
    assert stopped.value.findings == ("the statement in the warehouse is what the journal says: it is not",)


def test_a_closer_that_was_paused_while_the_period_was_reopened_writes_nothing(books: Books) -> None:
    closer = books.closer()
    rows = steps.freeze(closer)
    assert steps.reopen(closer, "not yet") == 1
    for step in (lambda: steps.settle(closer, rows.version, None), lambda: steps.seal(closer, rows.version)):
        with pytest.raises(Conflict):
            step()
    assert types(books) == ["period.closing", "period.reopened"]
    assert books.stored()["state"] == "reopened"
    books.close()
    with pytest.raises(Conflict, match="version 1 of the close of 2026-11 of alpha is over"):
        steps.settle(closer, rows.version, None)


def test_what_was_sealed_and_has_changed_is_never_sealed_anew(books: Books) -> None:
    closer = books.closer()
    rows = steps.freeze(closer)
    steps.settle(closer, rows.version, None)
    steps.seal(closer, rows.version)
    books.ledger.change(
        *tampering("postings", "UPDATE ledger.postings SET amount = amount + 1 WHERE seq = 2 AND n = 1")
    )
    with pytest.raises(Corrupt, match="was sealed as"):
        steps.seal(closer, rows.version)
    with pytest.raises(Refused, match="is no longer what was sealed"):
        steps.publish(closer, rows.version)
    assert not closer.folder(1).exists()


def test_what_is_not_sealed_is_not_published(books: Books) -> None:
    closer = books.closer()
    rows = steps.freeze(closer)
    steps.settle(closer, rows.version, None)
    with pytest.raises(Refused, match="is not sealed"):
        steps.publish(closer, rows.version)


def test_a_source_that_may_still_tell_is_waited_for_and_then_declared(books: Books) -> None:
    closer = books.closer(grace_s=24 * HOUR)
    books.ledger.clock.at = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
    with pytest.raises(Unavailable, match=f"{SILENT} has told of alpha until 2026-11-20T00:00:00Z"):
        steps.freeze(closer)
    assert types(books) == []
    books.ledger.append(told(at("2026-12-01T00:00:00Z"), Heartbeat(cluster=CLUSTER), source=SILENT))
    steps.settle(closer, steps.freeze(closer).version, None)
    assert [source.silent for source in books.made().document.sources] == [False]


def test_a_source_that_ended_before_the_period_is_not_waited_for(books: Books) -> None:
    books.ledger.append(told(at("2026-10-20T00:00:00Z"), Heartbeat(cluster=CLUSTER), source="slurm/old"))
    books.ledger.append(told(at("2026-12-01T00:00:00Z"), Heartbeat(cluster=CLUSTER), source=SILENT))
    assert steps.check(books.closer(grace_s=24 * HOUR)) is None


def test_after_the_grace_it_is_closed_with_the_gap_declared(books: Books) -> None:
    books.ledger.clock.at = dt.datetime(2026, 12, 2, tzinfo=dt.UTC)
    steps.settle(books.closer(), steps.freeze(books.closer(grace_s=24 * HOUR)).version, None)
    assert [(s.source, s.silent) for s in books.made().document.sources] == [(SILENT, True)]


def test_facts_that_come_while_a_close_is_under_way_change_nothing_of_it(books: Books) -> None:
    closer = books.closer()
    rows = steps.freeze(closer)
    books.ledger.append(*run_of(TENTH, TENTH + 9 * HOUR, "late"))
    steps.settle(closer, rows.version, None)
    charged = {line.account: line.weighted.charged for line in books.made().document.accounts}
    assert charged["org/vision"] == 72 * 3_600_000_000
    assert books.made().findings == []
    assert books.ledger.value("SELECT state FROM ledger.periods WHERE period = :p", p=NOVEMBER) == "closed"
