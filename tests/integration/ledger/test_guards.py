"""Law 1: a guard that is missing, off, replaced or leaky is listed, on parents and on every partition."""

import itertools

import pytest
from sqlalchemy.exc import DBAPIError
from tests.integration.ledger.books import HOUR, Ledger, run_of

from gpuledger.database.engine import Reader
from gpuledger.ledger import guards
from gpuledger.ledger.audit import verify

PARTITION = "ledger.journal_2026_12"
"""Where the clock of a test's ledger puts its rows."""


def faults(ledger: Ledger, *statements: str) -> list[str]:
    """List the faults after a superuser ran the statements, which are taken back."""
    with ledger.trial(*statements) as connection:
        return guards.faults(Reader(connection))


@pytest.fixture(scope="module")
def booked(shared_ledger: Ledger) -> Ledger:
    """One run, charged."""
    shared_ledger.append(*run_of(0, HOUR))
    return shared_ledger


def test_the_guards_of_a_migrated_database_are_in_place(booked: Ledger) -> None:
    assert faults(booked) == []
    assert booked.value(f"SELECT count(*) FROM {PARTITION}") == 3


TABLES = ("ledger.journal", "ledger.postings", "ledger.identities", PARTITION, "ledger.postings_2026_12")
TRIGGERS = list(itertools.product(TABLES, ("append_only_rows", "append_only_table")))
DROPPABLE = [
    (table, trigger) for table, trigger in TRIGGERS if not (trigger.endswith("rows") and "2026" in table)
]


@pytest.mark.parametrize(("table", "trigger"), TRIGGERS)
@pytest.mark.parametrize("switch", ["ENABLE", "DISABLE", "ENABLE REPLICA"])
def test_a_guard_that_is_off_is_listed(booked: Ledger, table: str, trigger: str, switch: str) -> None:
    found = faults(booked, f"ALTER TABLE ONLY {table} {switch} TRIGGER {trigger}")
    assert found == [f"trigger {trigger} on {table} is not ENABLE ALWAYS"]


@pytest.mark.parametrize(("table", "trigger"), DROPPABLE)
def test_a_guard_that_is_gone_or_replaced_is_listed(booked: Ledger, table: str, trigger: str) -> None:
    drop = f"DROP TRIGGER {trigger} ON {table}"
    assert f"trigger {trigger} on {table} is missing" in faults(booked, drop)
    other = (
        f"CREATE TRIGGER {trigger} BEFORE INSERT ON {table} EXECUTE FUNCTION ledger.refuse_change()",
        f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {trigger}",
    )
    found = [fault.partition(":")[0] for fault in faults(booked, drop, *other)]
    assert f"trigger {trigger} on {table} does something else" in found


def test_a_guard_of_rows_cannot_be_dropped_on_a_partition_alone(booked: Ledger) -> None:
    with pytest.raises(DBAPIError, match="cannot drop trigger"):
        faults(booked, f"DROP TRIGGER append_only_rows ON {PARTITION}")


@pytest.mark.parametrize("parent", ["journal", "postings"])
@pytest.mark.parametrize("then", ["", "ALTER TABLE {part} SET SCHEMA side"])
def test_a_partition_that_was_detached_is_found_by_its_name(booked: Ledger, parent: str, then: str) -> None:
    part = f"ledger.{parent}_2026_12"
    statements = [
        f"ALTER TABLE ledger.{parent} DETACH PARTITION {part}",
        *filter(None, [then.format(part=part)]),
    ]
    where = part.replace("ledger.", "side.") if then else part
    with booked.trial(*statements) as connection:
        audit = verify(Reader(connection))
    assert f"{where} is no partition of ledger.{parent}: it was detached" in audit.faults
    (alpha,) = [b.first_bad for b in audit.books if b.book == "alpha"]
    assert alpha is not None  # its rows are missed


@pytest.mark.parametrize("parent", ["journal", "postings"])
def test_a_partition_that_was_dropped_is_missed_by_the_other_table(booked: Ledger, parent: str) -> None:
    with booked.trial(f"DROP TABLE ledger.{parent}_2026_12") as connection:
        audit = verify(Reader(connection))
    assert audit.faults == (f"partition ledger.{parent}_2026_12 is missing",)
    assert [b.first_bad is None for b in audit.books if b.book == "alpha"] == [False]


def test_both_partitions_of_a_month_dropped_are_missed_by_the_chain(booked: Ledger) -> None:
    with booked.trial(f"DROP TABLE {PARTITION}", "DROP TABLE ledger.postings_2026_12") as connection:
        (alpha,) = [b.first_bad for b in verify(Reader(connection)).books if b.book == "alpha"]
    assert alpha is not None


def test_a_partition_made_by_hand_without_a_guard_is_listed(booked: Ledger) -> None:
    made = (
        "CREATE TABLE side.aside PARTITION OF ledger.journal FOR VALUES FROM ('3000-01-01') TO ('3000-02-01')"
    )
    assert "trigger append_only_table on side.aside is missing" in faults(booked, made)


def test_a_guard_whose_function_no_longer_refuses_is_listed(booked: Ledger) -> None:
    replaced = (
        "CREATE OR REPLACE FUNCTION ledger.refuse_change() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN RETURN NEW; END'"
    )
    assert faults(booked, replaced) == ["function ledger.refuse_change() does not refuse"]


@pytest.mark.parametrize(
    ("grant", "fault"),
    [
        ("UPDATE ON ledger.journal TO gpuledger_writer", "the writer role holds UPDATE on ledger.journal"),
        (
            "UPDATE (amount) ON ledger.postings TO gpuledger_writer",
            "the writer role holds UPDATE on ledger.postings",
        ),
        ("DELETE ON ledger.postings TO PUBLIC", "the writer role holds DELETE on ledger.postings"),
        (
            "TRUNCATE ON ledger.journal TO gpuledger_writer",
            "the writer role holds TRUNCATE on ledger.journal",
        ),
        (f"DELETE ON {PARTITION} TO gpuledger_writer", f"the writer role holds DELETE on {PARTITION}"),
        ("UPDATE ON ledger.identities TO PUBLIC", "the writer role holds UPDATE on ledger.identities"),
    ],
)
def test_a_right_that_the_writer_must_not_hold_is_listed(booked: Ledger, grant: str, fault: str) -> None:
    with booked.trial(f"GRANT {grant}") as connection:
        found = verify(Reader(connection))
    assert (found.faults, found.ok) == ((fault,), False)


def test_a_writer_that_may_act_as_the_owner_is_listed(booked: Ledger) -> None:
    found = faults(booked, "GRANT gpuledger_owner TO gpuledger_writer")
    assert f"the writer role may act as the owner of {PARTITION}" in found
