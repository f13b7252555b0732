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


def redefined(ledger: Ledger, old: str = "", new: str = "") -> str:
    """Return the definition of the guards' function, one thing in it replaced."""
    whole = str(ledger.value("SELECT pg_get_functiondef(to_regprocedure('ledger.refuse_change()'))"))
    assert old in whole
    return whole.replace(old, new, 1).replace("%", "%%")


def test_the_function_of_the_guards_made_again_as_it_was_raises_no_alarm(booked: Ledger) -> None:
    assert faults(booked, redefined(booked)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BEGIN", "BEGIN RETURN OLD;"),
        ("BEGIN", "BEGIN IF current_setting('a.b', true) = 'x' THEN RETURN OLD; END IF;"),
        ("RAISE EXCEPTION", "RAISE WARNING"),
        ("END $", "EXCEPTION WHEN OTHERS THEN RETURN NULL; END $"),
        ("TG_OP", "TG_NAME"),
        ("END $", "END; $"),
        ("LANGUAGE plpgsql", "LANGUAGE plpgsql SECURITY DEFINER"),
        ("LANGUAGE plpgsql", "LANGUAGE plpgsql SET search_path TO public"),
    ],
)
def test_a_function_of_the_guards_that_is_not_what_it_was_is_listed(
    booked: Ledger, old: str, new: str
) -> None:
    found = faults(booked, redefined(booked, old, new))
    assert found == ["function ledger.refuse_change() is not the one that the migrations made"]


@pytest.mark.parametrize(
    ("statements", "fault"),
    [
        (
            ["CREATE RULE r AS ON DELETE TO {table} DO INSTEAD NOTHING"],
            "a rule on {table} does something else: CREATE RULE r AS",
        ),
        (
            ["CREATE RULE r AS ON INSERT TO {table} DO INSTEAD NOTHING"],
            "a rule on {table} does something else: CREATE RULE r AS",
        ),
        (["ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"], "{table} has row security: rows can be hidden"),
        (["ALTER TABLE {table} FORCE ROW LEVEL SECURITY"], "{table} has row security: rows can be hidden"),
        (["CREATE POLICY p ON {table} USING (false)"], "{table} has row security: rows can be hidden"),
        (
            ["ALTER TABLE {table} OWNER TO gpuledger_reader"],
            "{table} belongs to gpuledger_reader, not to gpuledger_owner",
        ),
        (
            ["ALTER TABLE {table} ADD CONSTRAINT c CHECK (seq > 0)"],
            "constraint of {table} is none of the ledger's: CHECK ((seq > 0))",
        ),
        (
            [
                "CREATE FUNCTION side.drop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
                "CREATE TRIGGER t BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION side.drop()",
            ],
            "trigger t on {table} is none of the ledger's: CREATE TRIGGER t BEFORE INSERT",
        ),
        (
            [
                "CREATE FUNCTION side.drop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
                "CREATE TRIGGER a BEFORE DELETE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION side.drop()",
            ],
            "trigger a on {table} is none of the ledger's: CREATE TRIGGER a BEFORE DELETE",
        ),
    ],
)
@pytest.mark.parametrize("table", TABLES)
def test_what_is_besides_or_otherwise_is_listed(
    booked: Ledger, table: str, statements: list[str], fault: str
) -> None:
    found = faults(booked, *(statement.format(table=table) for statement in statements))
    assert [one for one in found if one.startswith(fault.format(table=table))]


def narrowed(table: str, trigger: str, does: str, function: str = "ledger.refuse_change()") -> list[str]:
    """Return statements that replace a guard by one that looks like it."""
    return [
        f"DROP TRIGGER {trigger} ON {table}",
        f"CREATE TRIGGER {trigger} {does.format(table=table)} EXECUTE FUNCTION {function}",
        f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {trigger}",
    ]


@pytest.mark.parametrize(
    "does",
    [
        "BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW WHEN (OLD.seq < 0)",
        "BEFORE UPDATE OF book OR DELETE ON {table} FOR EACH ROW",
        "BEFORE DELETE ON {table} FOR EACH ROW",
        "BEFORE UPDATE OR DELETE ON {table} FOR EACH STATEMENT",
        "AFTER UPDATE OR DELETE ON {table} FOR EACH ROW",
    ],
)
@pytest.mark.parametrize("table", ["ledger.journal", "ledger.identities"])
def test_a_guard_that_lets_something_through_is_listed(booked: Ledger, table: str, does: str) -> None:
    found = faults(booked, *narrowed(table, "append_only_rows", does))
    assert f"trigger append_only_rows on {table} does something else" in [f.partition(":")[0] for f in found]


@pytest.mark.parametrize("path", ["pg_catalog", "ledger", "side, ledger"])
def test_a_guard_that_calls_a_function_of_the_same_name_is_listed(booked: Ledger, path: str) -> None:
    other = "CREATE FUNCTION side.refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"
    does = "BEFORE TRUNCATE ON {table} FOR EACH STATEMENT"
    statements = narrowed("ledger.identities", "append_only_table", does, "side.refuse_change()")
    (found,) = faults(booked, other, *statements, f"SET LOCAL search_path TO {path}")
    assert found.startswith("trigger append_only_table on ledger.identities does something else")


@pytest.mark.parametrize(
    "setting", ["search_path TO ledger", "search_path TO ''", "timezone TO 'Asia/Kathmandu'"]
)
def test_settings_of_the_session_raise_no_alarm(booked: Ledger, setting: str) -> None:
    assert faults(booked, f"SET LOCAL {setting}") == []


def made(table: str, bounds: str) -> list[str]:
    """Return statements that make a guarded partition of the journal."""
    return [
        f"CREATE TABLE {table} (LIKE ledger.journal INCLUDING CONSTRAINTS INCLUDING INDEXES)",
        f"CREATE TRIGGER append_only_table BEFORE TRUNCATE ON {table} EXECUTE FUNCTION ledger.refuse_change()",
        f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only_table",
        f"ALTER TABLE {table} OWNER TO gpuledger_owner",
        f"ALTER TABLE ledger.journal ATTACH PARTITION {table} {bounds}",
        f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only_rows",
    ]


@pytest.mark.parametrize(
    ("table", "bounds"),
    [
        ("ledger.journal_2990_02", "FOR VALUES FROM ('2990-01-01 00:00+00') TO ('2990-02-01 00:00+00')"),
        ("ledger.journal_2990_01", "FOR VALUES FROM ('2990-01-01 00:00+00') TO ('2990-03-01 00:00+00')"),
        (
            "ledger.journal_2990_01",
            "FOR VALUES FROM ('2990-01-01 00:00+05:45') TO ('2990-02-01 00:00+05:45')",
        ),
        ("ledger.journal_2990_01", "FOR VALUES FROM ('2990-01-01 00:00+00') TO (MAXVALUE)"),
        ("ledger.journal_2990_01", "DEFAULT"),
        ("side.journal_2990_01", "FOR VALUES FROM ('2990-01-01 00:00+00') TO ('2990-02-01 00:00+00')"),
    ],
)
def test_a_partition_that_holds_something_else_than_its_month_is_listed(
    booked: Ledger, table: str, bounds: str
) -> None:
    found = [fault for fault in faults(booked, *made(table, bounds)) if "is missing" not in fault]
    assert [fault.partition(":")[0] for fault in found] == [
        f"partition {table} holds something else than its month"
    ]


def test_a_partition_as_the_ledger_makes_it_raises_no_alarm_but_for_its_other_half(booked: Ledger) -> None:
    bounds = "FOR VALUES FROM ('2990-01-01 00:00+00') TO ('2990-02-01 00:00+00')"
    found = faults(booked, *made("ledger.journal_2990_01", bounds))
    assert found == ["partition ledger.postings_2990_01 is missing"]


def test_a_table_whose_rows_are_taken_for_history_is_listed(booked: Ledger) -> None:
    found = faults(booked, "CREATE TABLE side.more () INHERITS (ledger.identities)")
    assert "side.more inherits from ledger.identities: its rows are taken for history" in found


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("ALTER TABLE ledger.identities SET UNLOGGED", "ledger.identities is not logged: a crash empties it"),
        (
            "ALTER TABLE ledger.identities DROP CONSTRAINT pk_identities",
            "constraint of ledger.identities is missing: PRIMARY KEY (book, event_id, source, digest)",
        ),
        (
            "ALTER TABLE ledger.postings DROP CONSTRAINT ck_postings_positive",
            "constraint of ledger.postings is missing: CHECK ((amount > 0))",
        ),
        (
            "ALTER SCHEMA ledger OWNER TO gpuledger_reader",
            "schema ledger belongs to gpuledger_reader, not to gpuledger_owner",
        ),
        (
            "ALTER FUNCTION ledger.refuse_change() OWNER TO gpuledger_reader",
            "function ledger.refuse_change() belongs to gpuledger_reader, not to gpuledger_owner",
        ),
        (
            "ALTER FUNCTION ledger.make_partitions(timestamptz) SECURITY INVOKER",
            "function ledger.make_partitions(timestamptz) is not the one that the migrations made",
        ),
        (
            "DROP FUNCTION ledger.make_partitions(timestamptz)",
            "function ledger.make_partitions(timestamptz) is missing",
        ),
        ("DROP TABLE ledger.identities", "table ledger.identities is missing"),
        ("ALTER TABLE ledger.identities RENAME TO gone", "table ledger.identities is missing"),
    ],
)
def test_what_tables_and_functions_must_be(booked: Ledger, statement: str, fault: str) -> None:
    assert fault in faults(booked, statement)


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
        ("UPDATE ON ledger.identities TO PUBLIC", "the reader role holds UPDATE on ledger.identities"),
        ("TRIGGER ON ledger.journal TO gpuledger_writer", "the writer role holds TRIGGER on ledger.journal"),
        ("DELETE ON ledger.journal TO gpuledger_reader", "the reader role holds DELETE on ledger.journal"),
    ],
)
def test_a_right_that_a_role_must_not_hold_is_listed(booked: Ledger, grant: str, fault: str) -> None:
    with booked.trial(f"GRANT {grant}") as connection:
        found = verify(Reader(connection))
    assert fault in found.faults
    assert not found.ok


def test_a_writer_that_may_act_as_the_owner_is_listed(booked: Ledger) -> None:
    found = faults(booked, "GRANT gpuledger_owner TO gpuledger_writer")
    assert f"the writer role may act as the owner of {PARTITION}" in found
