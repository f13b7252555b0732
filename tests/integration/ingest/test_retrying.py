"""A dead letter that is understood by now is booked with the mark that says so, once."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
import sqlalchemy as sa
from tests.integration.ingest.test_worker import INVENTORY, count, job, told

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import ShareSet
from gpuledger.events.envelope import Event
from gpuledger.ingest import dead_letters, retrying
from gpuledger.ingest.dead_letters import DeadLetter, Entry, State, Stored, iter_entries, put
from gpuledger.ingest.intake import Intake, Taken
from gpuledger.ingest.retrying import Retried, read_again, retry, retry_mended
from gpuledger.kernel.errors import BadRecord, NotFound, Refused, Unavailable
from gpuledger.sources import registry
from gpuledger.sources.protocol import Translated

FAULTS: list[tuple[int, str]] = []


@pytest.fixture(autouse=True)
def _no_faults() -> None:
    FAULTS.clear()


def on_failure(stored: Stored, error: Refused) -> None:
    FAULTS.append((stored.letter.position, error.message))


def event_letter(position: int, raw: bytes) -> DeadLetter:
    place = f"gpu.scheduler.events[0]@{position}"
    return DeadLetter("gpu.scheduler.events", 0, position, place, "unknown-type", "why", "hint", raw)


def kept(intake: Intake, *values: bytes) -> list[Entry]:
    """Keep values as letters, as an older version that could not read them would have."""
    with writing(intake.engine) as writer:
        put(writer, [event_letter(n, value) for n, value in enumerate(values)], intake.clock.now())
    return list(iter_entries(intake.engine))


def states(intake: Intake) -> list[State]:
    return [entry.state for entry in iter_entries(intake.engine, dead_letters.LettersQuery(state=None))]


def tried(intake: Intake) -> Retried:
    return retry(intake, iter_entries(intake.engine), on_failure)


def test_what_is_understood_is_booked_and_the_rest_waits_on(engine: sa.Engine, intake: Intake) -> None:
    kept(intake, *job("a"), b"nonsense", *job("b", "beta"))
    assert tried(intake) == Retried(resolved=6, failed=1, clusters={"alpha", "beta"})
    assert [position for position, _ in FAULTS] == [3]
    assert count(engine, "journal", "book <> '~org'") == 6
    assert states(intake) == [State.RESOLVED] * 3 + [State.WAITING] + [State.RESOLVED] * 3


def test_again_changes_nothing(engine: sa.Engine, intake: Intake) -> None:
    kept(intake, *job("a"))
    tried(intake)
    rows = count(engine, "journal")
    assert tried(intake) == Retried()
    assert count(engine, "journal") == rows


def test_letters_of_events_that_came_some_other_way_are_resolved_and_book_nothing(
    engine: sa.Engine, intake: Intake
) -> None:
    kept(intake, *job("a"))
    intake.take([retrying.understood(value) for value in job("a")])
    rows = count(engine, "journal")
    assert tried(intake).resolved == 3
    assert count(engine, "journal") == rows


def test_one_killed_before_it_commits_books_nothing_and_resolves_nothing(
    engine: sa.Engine, intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(intake, *job("a"))
    resolve = dead_letters.resolve

    def resolve_and_die(*arguments: object) -> None:
        resolve(*arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(dead_letters, "resolve", resolve_and_die)
        with pytest.raises(KeyboardInterrupt):
            tried(intake)
    assert count(engine, "journal", "book = 'alpha'") == 0
    assert states(intake) == [State.WAITING] * 3
    assert tried(intake).resolved == 3


def test_one_killed_between_two_transactions_of_a_letter_finishes_it_later(
    engine: sa.Engine, intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record of an import may say something of two books."""
    both = (
        told("s", 0, ShareSet(account="org", share=1, reason="budget-file", by="unknown")),
        told("h", 0, retrying.understood(INVENTORY).data),
    )
    monkeypatch.setitem(registry._SOURCES, "both", _Source(both))
    letter = replace(event_letter(1, b"row"), stream="import/both/alpha", context={"source": "both"})
    with writing(engine) as writer:
        put(writer, [letter], intake.clock.now())

    with monkeypatch.context() as patch:
        patch.setattr(dead_letters, "resolve", _out_of_reach)
        with pytest.raises(Unavailable):
            tried(intake)
    assert (count(engine, "journal", "type = 'budget.share_set'"), states(intake)) == (1, [State.WAITING])

    assert tried(intake).resolved == 1
    assert count(engine, "journal", "type IN ('budget.share_set', 'host.registered')") == 2


def _out_of_reach(*_: object) -> None:
    raise Unavailable("the database went away")


class _Source:
    """Reads everything as the same facts."""

    name = "both"

    def __init__(self, events: tuple[tuple[Event, bytes], ...]) -> None:
        self._events = events

    def retry(self, raw: bytes, context: Mapping[str, object]) -> Translated:
        return Translated(1, self._events)


@pytest.mark.parametrize("end", ["resolved", "discarded"])
def test_a_letter_that_ended_meanwhile_is_not_booked_and_the_others_are(
    engine: sa.Engine, intake: Intake, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    entries = kept(intake, *job("a"), *job("b"))
    take = Intake.take
    raced: list[int] = []

    def take_late(self: Intake, events: list[Event], guard: object = None) -> Taken:
        if not raced:
            raced.append(entries[0].id)
            with engine.begin() as connection:
                connection.exec_driver_sql(
                    f"UPDATE ledger.dead_letters SET {end}_at = now() WHERE id = {raced[0]}"
                )
        return take(self, events, guard)  # type: ignore[arg-type]

    monkeypatch.setattr(Intake, "take", take_late)
    assert retry(intake, entries, on_failure).resolved == 5
    assert FAULTS == []
    assert count(engine, "journal", "book = 'alpha'") == 5
    assert states(intake) == [State(end)] + [State.RESOLVED] * 5


def test_an_event_that_no_book_can_be_settled_with_keeps_nobody_back(
    intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(intake, *job("a"), *job("b"))
    take = Intake.take

    def picky(self: Intake, events: list[Event], guard: object = None) -> Taken:
        if any(event.id == "a/1" for event in events):
            raise Refused("larger than the ledger can hold")
        return take(self, events, guard)  # type: ignore[arg-type]

    monkeypatch.setattr(Intake, "take", picky)
    done = tried(intake)
    assert (done.resolved, done.failed) == (5, 1)
    assert FAULTS == [(1, "larger than the ledger can hold")]


def test_large_letters_are_not_held_all_at_once(intake: Intake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "BATCH_BYTES", 1000)
    kept(intake, *(b"x" * size for size in (10, 20, 2000, 600, 600, 10)))
    held: list[int] = []
    waiting = dead_letters.waiting

    def counted(*arguments: object, **keys: object) -> list[Stored]:
        found = waiting(*arguments, **keys)  # type: ignore[arg-type]
        held.append(sum(len(stored.letter.raw) for stored in found))
        return found

    monkeypatch.setattr(dead_letters, "waiting", counted)
    assert tried(intake).failed == 6
    assert held == [30, 2000, 600, 610]


def test_a_source_that_learns_to_read_a_row(intake: Intake, monkeypatch: pytest.MonkeyPatch) -> None:
    letter = replace(event_letter(1, b"row"), stream="import/learned/alpha", context={"source": "learned"})
    with pytest.raises(Refused, match="source 'learned' is not known"):
        read_again(letter)
    monkeypatch.setitem(
        registry._SOURCES, "learned", _Source((told("h", 0, retrying.understood(INVENTORY).data),))
    )
    assert [event.id for event in read_again(letter)] == ["h"]


def test_a_mended_value_is_booked_in_place_of_the_letters_own_which_stays(
    engine: sa.Engine, intake: Intake
) -> None:
    (entry,) = kept(intake, b"{broken")
    done = retry_mended(intake, entry.id, job("a")[0], on_failure)
    assert (done.resolved, done.clusters) == (1, {"alpha"})
    assert count(engine, "journal", "book = 'alpha'") == 1
    with engine.connect() as connection:
        assert (
            bytes(connection.exec_driver_sql("SELECT raw FROM ledger.dead_letters").scalar_one())
            == b"{broken"
        )
    with pytest.raises(Refused, match=f"dead letter {entry.id} was resolved at "):
        retry_mended(intake, entry.id, job("a")[0], on_failure)


def test_a_record_that_was_cut_off_can_be_mended_with_the_whole_of_it(
    engine: sa.Engine, intake: Intake
) -> None:
    header = ["timestamp", "duration", "num_gpus", "gpu_time", "cluster"]
    context = {
        "source": "philly",
        "path": "p.csv",
        "line": 2,
        "header": header,
        "ordinal": 0,
        "partial": True,
    }
    letter = DeadLetter(
        "import/philly/philly", 0, 2, "p.csv:2", "truncated-gzip", "", "", b"2017-10-01 00", context
    )
    with writing(engine) as writer:
        put(writer, [letter], intake.clock.now())
    (entry,) = iter_entries(engine)
    with pytest.raises(BadRecord, match="only the beginning"):
        read_again(letter)
    done = retry_mended(intake, entry.id, b"2017-10-01 00:00:02,3600.0,4,14400.0,vc", on_failure)
    assert (done.resolved, FAULTS) == (1, [])


def test_a_mended_value_that_is_still_wrong_leaves_the_letter_waiting(intake: Intake) -> None:
    (entry,) = kept(intake, b"{broken")
    assert retry_mended(intake, entry.id, b"{}", on_failure).failed == 1
    assert states(intake) == [State.WAITING]
    with reading(intake.engine) as reader:
        assert dead_letters.get_entry(reader, entry.id).code == "unknown-type", "the first reason stays"


def test_a_number_that_there_is_not(intake: Intake) -> None:
    with pytest.raises(NotFound, match="no dead letter 7"):
        retry_mended(intake, 7, b"{}", on_failure)
