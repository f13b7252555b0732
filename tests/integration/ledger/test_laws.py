"""The laws of the ledger as a whole, against what a person with the keys to the database may try."""

import datetime as dt

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    NOON,
    SOURCE,
    Ledger,
    ended,
    run_of,
    started,
    submitted,
    told,
)

from gpuledger.database.engine import WRITER_ROLE, Writer, reading, writing
from gpuledger.events.workload import Suspended
from gpuledger.ingest import offsets
from gpuledger.ingest.dead_letters import DeadLetter, put, resolve, waiting
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Fenced
from gpuledger.ledger import rebuild
from gpuledger.ledger.append import append
from gpuledger.ledger.audit import verify

CHANGES = {
    "update": "UPDATE ledger.{table} SET book = book || 'x'",
    "delete": "DELETE FROM ledger.{table}",
    "truncate": "TRUNCATE ledger.{table}",
}
LETTER = DeadLetter(
    "gpu.scheduler.events", 0, 7, "gpu.scheduler.events[0]@7", "bad-field", "why", "hint", b"\xff\x00{"
)


@pytest.fixture(scope="module")
def booked(shared_ledger: Ledger) -> Ledger:
    """One run, charged."""
    shared_ledger.append(*run_of(0, HOUR))
    return shared_ledger


@pytest.mark.parametrize("table", ["journal", "postings", "identities"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "session",
    [
        (),
        ("SET LOCAL session_replication_role = replica",),
        ("CREATE ROLE nobody_special", "ALTER TABLE ledger.{table} OWNER TO nobody_special",
         "GRANT USAGE ON SCHEMA ledger TO nobody_special", "SET LOCAL ROLE nobody_special"),
    ],
    ids=["superuser", "replica", "owner"],
)  # fmt: skip
def test_law_1_history_cannot_be_changed_by_whoever_owns_it(
    booked: Ledger, table: str, change: str, session: tuple[str, ...]
) -> None:
    refused = rf"ledger\.{table}(_\d{{4}}_\d\d)? is append only: {change.upper()} refused"
    with (
        booked.trial(*(statement.format(table=table) for statement in session)) as connection,
        pytest.raises(DBAPIError, match=refused),
    ):
        connection.exec_driver_sql(CHANGES[change].format(table=table))
    assert booked.value(f"SELECT count(*) FROM ledger.{table}") > 0


@pytest.mark.parametrize("table", ["journal", "postings", "identities"])
@pytest.mark.parametrize("change", CHANGES)
def test_law_1_the_writer_holds_no_right_to_change_history(booked: Ledger, table: str, change: str) -> None:
    with booked.trial(f"SET LOCAL ROLE {WRITER_ROLE}") as connection, pytest.raises(DBAPIError) as refused:
        connection.exec_driver_sql(CHANGES[change].format(table=table))
    assert isinstance(refused.value.orig, psycopg.errors.InsufficientPrivilege)


@pytest.mark.parametrize("statement", ["ALTER TABLE ledger.journal DISABLE TRIGGER ALL", "DROP TABLE ledger.postings",
                                       "SET session_replication_role = replica"])  # fmt: skip
def test_law_1_the_writer_cannot_switch_the_guards_off(booked: Ledger, statement: str) -> None:
    with booked.trial(f"SET LOCAL ROLE {WRITER_ROLE}") as connection, pytest.raises(DBAPIError) as refused:
        connection.exec_driver_sql(statement)
    assert isinstance(refused.value.orig, psycopg.errors.InsufficientPrivilege)


def test_law_1_every_transaction_of_the_product_runs_as_the_writer_or_cannot_write(booked: Ledger) -> None:
    with writing(booked.engine) as writer:
        assert writer.exec_driver_sql("SELECT current_user").scalar() == WRITER_ROLE
    with reading(booked.engine) as reader, pytest.raises(DBAPIError, match="read-only transaction"):
        reader.exec_driver_sql("DELETE FROM ledger.balances")


def test_law_2_a_paused_worker_that_wakes_up_later_writes_nothing(ledger: Ledger) -> None:
    stream = ("ledger", "gpu.scheduler.events")
    with writing(ledger.engine) as writer:
        (paused,) = offsets.claim(writer, *stream, [0])
    with writing(ledger.engine) as writer:
        (successor,) = offsets.claim(writer, *stream, [0])
        append(writer, CLUSTER, run_of(0, HOUR), clock=ledger.clock, calendar=ledger.calendar)
        offsets.advance(writer, successor, 3)
    before, digest = ledger.rows("SELECT * FROM ledger.journal ORDER BY seq"), ledger.digest()

    def wake_up() -> None:
        with writing(ledger.engine) as writer:
            append(writer, CLUSTER, run_of(0, HOUR, "w2"), clock=ledger.clock, calendar=ledger.calendar)
            offsets.advance(writer, paused, 99)

    with pytest.raises(Fenced, match="taken over"):
        wake_up()
    assert ledger.rows("SELECT * FROM ledger.journal ORDER BY seq") == before
    assert ledger.digest() == digest
    with reading(ledger.engine) as reader:
        assert offsets.positions(reader, *stream) == {0: 3}


def test_law_2_position_and_rows_commit_together_or_not_at_all(ledger: Ledger) -> None:
    with writing(ledger.engine) as writer:
        (claim,) = offsets.claim(writer, "ledger", "topic", [0])

    def crash() -> None:
        with writing(ledger.engine) as writer:
            append(writer, CLUSTER, run_of(0, HOUR), clock=ledger.clock, calendar=ledger.calendar)
            offsets.advance(writer, claim, 3)
            raise RuntimeError("power")

    with pytest.raises(RuntimeError, match="power"):
        crash()
    with reading(ledger.engine) as reader:
        assert offsets.positions(reader, "ledger", "topic") == {0: 0}
    assert ledger.value("SELECT count(*) FROM ledger.journal") == 0


def test_law_3_ledgers_with_user_keys_of_their_own_reach_the_same_state_from_any_order(
    ledger: Ledger,
) -> None:
    # Eight submissions of one instant that contradict each other; every trial draws its own keys.
    claims = [
        told(0, submitted(account=f"org/{name}", user=user, gpus_milli=gpus))
        for name, gpus in (("a", 1000), ("b", 2000))
        for user in ("ada", "grace", "zoë", "li")
    ]
    rest = [told(0, started()), told(HOUR, ended())]
    digests = set()
    for order in (claims + rest, rest + claims, claims[::-1] + rest, rest + claims[4:] + claims[:4]):
        with ledger.trial(f"SET LOCAL ROLE {WRITER_ROLE}") as connection:
            writer = Writer(connection)
            append(writer, CLUSTER, order, clock=ledger.clock, calendar=ledger.calendar)
            digests.add(rebuild.state_digest(writer))
    assert len(digests) == 1


def test_law_4_and_5_hold_after_corrections_of_every_kind(ledger: Ledger) -> None:
    ledger.append(*run_of(0, 5 * HOUR), *run_of(HOUR, 2 * HOUR, "w2", klass="unallocated"))
    ledger.append(told(2 * HOUR, ended(), source="reconcile/a"))
    ledger.append(told(HOUR, started(gpus_milli=64_000), source="reconcile/a"))
    ledger.append(told(0, submitted(account="org/speech"), source="reconcile/a"))
    with reading(ledger.engine) as reader:
        assert verify(reader).ok
        assert rebuild.check(reader, Calendar()).ok
    assert ledger.net() == {
        ("charge", "org/speech", "w1/r1", "1970-01-01"): 64 * GPU_HOUR,
        ("unallocated", "org/vision", "w2/r1", "1970-01-01"): 8 * GPU_HOUR,
    }


def test_law_6_effective_and_recorded_time_are_both_kept(ledger: Ledger) -> None:
    ledger.append(told(12345, submitted()))
    ((recorded, effective),) = ledger.rows("SELECT recorded_at, effective_at FROM ledger.journal")
    assert (recorded, effective) == (NOON, dt.datetime.fromtimestamp(12345, dt.UTC))


def test_law_7_what_cannot_be_read_is_kept_whole_once_and_told_to_its_topic(ledger: Ledger) -> None:
    with writing(ledger.engine) as writer:
        assert put(writer, [LETTER, LETTER], NOON) == 1
        assert put(writer, [LETTER], NOON) == 0
    with reading(ledger.engine) as reader:
        (stored,) = waiting(reader)
    assert (stored.letter, stored.received_at) == (LETTER, NOON)
    assert ledger.rows("SELECT topic, key FROM ledger.outbox") == [("gpu.dead-letters", LETTER.stream)]


def test_law_7_a_letter_that_was_read_after_all_no_longer_waits_but_stays(ledger: Ledger) -> None:
    with writing(ledger.engine) as writer:
        put(writer, [LETTER], NOON)
        (stored,) = waiting(writer)
        resolve(writer, [stored.id], NOON)
        assert waiting(writer) == []
    assert ledger.value("SELECT raw FROM ledger.dead_letters") == LETTER.raw


def test_law_7_a_run_that_nobody_owns_is_booked_to_a_visible_account(ledger: Ledger) -> None:
    ledger.append(told(0, started()), told(HOUR, ended()))
    assert ledger.used() == {"unmapped/unknown": 8 * GPU_HOUR}


def test_names_of_users_never_enter_the_journal(ledger: Ledger) -> None:
    ledger.append(
        told(0, submitted(user="Ada Lovelace"), id="x"), told(0, started(user="Ada Lovelace"), id="y")
    )
    rows = ledger.rows("SELECT j::text FROM ledger.journal AS j")
    assert not [text for (text,) in rows if "Lovelace" in text]
    token = ledger.value("SELECT token FROM side.user_keys WHERE name = 'Ada Lovelace'")
    assert ledger.rows("SELECT DISTINCT body->>'user' FROM ledger.journal") == [(token,)]
    assert ledger.rows("SELECT DISTINCT user_token FROM ledger.segments") == [(token,)]


def test_the_digest_of_a_body_that_names_a_user_does_not_betray_the_name(ledger: Ledger) -> None:
    event = told(0, submitted(user="ada"))
    ledger.append(event, told(0, started()))
    digests = {bytes(digest) for (digest,) in ledger.rows("SELECT digest FROM ledger.journal")}
    assert event.digest not in digests
    assert told(0, started()).digest in digests


def test_keys_that_the_schema_does_not_know_are_kept_aside_and_never_in_the_journal(ledger: Ledger) -> None:
    ledger.append(told(0, submitted(), id="x", job_name="secret plans"), told(1, started(), id="y"))
    assert not [
        text for (text,) in ledger.rows("SELECT j::text FROM ledger.journal AS j") if "secret" in text
    ]
    ((ref, salt, body),) = ledger.rows("SELECT ref, salt, body FROM side.texts")
    assert bytes(body) == b'{"job_name":"secret plans"}'
    assert ledger.rows("SELECT seq FROM ledger.journal WHERE extra_ref = :ref", ref=ref) == [(1,)]
    assert len(salt) == 16


def test_erasing_a_user_and_a_text_leaves_the_chain_valid_and_the_state_as_it_was(ledger: Ledger) -> None:
    ledger.append(told(0, submitted(), id="x", job_name="secret"), told(0, started()), told(HOUR, ended()))
    digest, head = ledger.digest(), ledger.value("SELECT head FROM ledger.books")
    token = ledger.value("SELECT user_token FROM ledger.segments WHERE until_seq IS NULL")
    ledger.change("DELETE FROM side.user_keys", "DELETE FROM side.texts")
    with reading(ledger.engine) as reader:
        assert verify(reader).ok
        assert rebuild.check(reader, Calendar()).ok
    assert (ledger.digest(), ledger.value("SELECT head FROM ledger.books")) == (digest, head)
    assert ledger.used("user") == {token: 8 * GPU_HOUR}


def test_events_of_an_erased_user_that_arrive_again_change_no_amount(ledger: Ledger) -> None:
    events = run_of(0, HOUR)
    ledger.append(*events)
    digest = ledger.digest()
    ledger.change("DELETE FROM side.user_keys")
    ledger.append(*events)
    assert ledger.digest() == digest
    with reading(ledger.engine) as reader:
        assert verify(reader).ok
        assert rebuild.check(reader, Calendar()).ok


def test_facts_that_move_no_amount_are_journalled_all_the_same(ledger: Ledger) -> None:
    suspended = Suspended(cluster=CLUSTER, workload="w1", run="r1")
    ledger.append(*run_of(0, HOUR), told(9, suspended))
    assert ledger.rows("SELECT type, source, event_id <> '' FROM ledger.journal WHERE seq = 4") == [
        ("workload.suspended", SOURCE, True)
    ]
    assert ledger.total() == 8 * GPU_HOUR
