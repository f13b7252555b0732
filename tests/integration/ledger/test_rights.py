"""Who may do what to which table: every role tries everything on every kind of table."""

import pytest
from psycopg.errors import InsufficientPrivilege, IntegrityError, ObjectNotInPrerequisiteState, RaiseException
from sqlalchemy.exc import DBAPIError
from tests.integration.ledger.books import HOUR, Ledger, run_of

READ, ADD, CHANGE = {"SELECT"}, {"SELECT", "INSERT"}, {"SELECT", "INSERT", "UPDATE", "DELETE"}
EVERYTHING = CHANGE | {"TRUNCATE"}
NOTHING: set[str] = set()

HISTORY = ("ledger.journal", "ledger.postings", "ledger.identities")
PARTITIONS = ("ledger.journal_2026_12", "ledger.postings_2026_12")
KEPT = (
    "ledger.books", "ledger.balances", "ledger.segments", "ledger.waits", "ledger.hosts", "ledger.accounts",
    "ledger.shares", "ledger.holds", "ledger.lots", "ledger.overdrafts", "ledger.watermarks", "ledger.day_sums",
    "ledger.organisation", "ledger.periods", "ledger.stream_offsets", "ledger.dead_letters",
    "ledger.outbox", "side.user_keys", "side.texts", "telemetry.samples", "telemetry.buckets",
    "telemetry.handles",
)  # fmt: skip
"""Projections, positions, names, samples."""
DECISIONS, STATUS = ("ledger.cycle_decisions",), ("ledger.policy_status",)
"""What recent cycles decided, kept and forgotten but never changed; what the newest came to, a row a cluster."""
VIEWS = ("ledger_read.segments", "ledger_read.waits", "ledger_read.hosts", "ledger_read.accounts", "ledger_read.shares",
         "ledger_read.balances", "ledger_read.periods", "ledger_read.buckets", "ledger_read.organisation",
         "ledger_read.books", "ledger_read.holds", "ledger_read.watermarks", "ledger_read.submissions",
         "ledger_read.segment_versions", "ledger_read.wait_versions", "ledger_read.host_versions",
         "ledger_read.share_versions", "ledger_read.seals", "ledger_read.asked", "ledger_read.posted",
         "ledger_read.rates", "ledger_read.placements")  # fmt: skip
WAREHOUSE_VIEWS = ("warehouse.demand_hour", "warehouse.entitlement_hour", "warehouse.waste_period")
OWN_VIEWS = ("telemetry.run_buckets",)
"""What the ledger itself reads."""
WAREHOUSE = (
    "warehouse.usage_hour",
    "warehouse.gpu_bucket",
    "warehouse.gpu_hour",
    "warehouse.layer_metrics_day",
    "warehouse.budget_vs_actual",
    "warehouse.queue_wait_day",
    "warehouse.waste_day",
    "warehouse.host_health_day",
    "warehouse.forecast",
    "warehouse.watermark",
)

CLOSES = ("warehouse.close", "warehouse.statement")
"""Written by who closes."""

MAY = {
    "gpuledger_writer": {
        HISTORY: ADD,
        PARTITIONS: NOTHING,
        KEPT: CHANGE,
        DECISIONS: ADD | {"DELETE"},
        STATUS: ADD | {"UPDATE"},
        VIEWS: NOTHING,
        OWN_VIEWS: READ,
        WAREHOUSE_VIEWS: NOTHING,
        WAREHOUSE: NOTHING,
        CLOSES: CHANGE,
    },
    "gpuledger_reader": {
        HISTORY: NOTHING,
        PARTITIONS: NOTHING,
        KEPT: NOTHING,
        DECISIONS: NOTHING,
        STATUS: NOTHING,
        VIEWS: READ,
        OWN_VIEWS: NOTHING,
        WAREHOUSE_VIEWS: READ,
        WAREHOUSE: READ,
        CLOSES: READ,
    },
    "gpuledger_owner": {
        HISTORY: ADD,
        PARTITIONS: ADD,
        KEPT: EVERYTHING,
        DECISIONS: EVERYTHING,
        STATUS: EVERYTHING,
        VIEWS: READ,
        OWN_VIEWS: READ,
        WAREHOUSE_VIEWS: READ,
        WAREHOUSE: EVERYTHING,
        CLOSES: EVERYTHING,
    },
    "postgres": {
        HISTORY: ADD,
        PARTITIONS: ADD,
        KEPT: EVERYTHING,
        DECISIONS: EVERYTHING,
        STATUS: EVERYTHING,
        VIEWS: READ,
        OWN_VIEWS: READ,
        WAREHOUSE_VIEWS: READ,
        WAREHOUSE: EVERYTHING,
        CLOSES: EVERYTHING,
    },
    "somebody": {
        HISTORY: NOTHING,
        PARTITIONS: NOTHING,
        KEPT: NOTHING,
        DECISIONS: NOTHING,
        STATUS: NOTHING,
        VIEWS: NOTHING,
        OWN_VIEWS: NOTHING,
        WAREHOUSE_VIEWS: NOTHING,
        WAREHOUSE: NOTHING,
        CLOSES: NOTHING,
    },
}
"""Role -> kind of table -> what it may do. ``postgres`` is a superuser, ``somebody`` a role without any right."""

CASES = [
    pytest.param(role, table, do, do in may, id=f"{role.removeprefix('gpuledger_')}-{table}-{do}")
    for role, rights in MAY.items()
    for tables, may in rights.items()
    for table in tables
    for do in sorted(EVERYTHING)
    # What the owner may do through a view is what it may do to the table.
    if not (tables in (VIEWS, OWN_VIEWS, WAREHOUSE_VIEWS) and do != "SELECT"
            and (do == "TRUNCATE" or role in ("gpuledger_owner", "postgres")))
]  # fmt: skip


@pytest.fixture(scope="module")
def booked(shared_ledger: Ledger) -> Ledger:
    """One run, charged: guards of rows need rows."""
    shared_ledger.append(*run_of(0, HOUR))
    return shared_ledger


def statement(ledger: Ledger, table: str, do: str) -> str:
    schema, _, name = table.partition(".")
    column = ledger.value(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = :schema AND table_name = :name"
        " ORDER BY is_updatable DESC, ordinal_position DESC LIMIT 1", schema=schema, name=name
    )  # fmt: skip
    return {
        "SELECT": f"SELECT 1 FROM {table} LIMIT 1",
        "INSERT": f"INSERT INTO {table} DEFAULT VALUES",
        "UPDATE": f"UPDATE {table} SET {column} = NULL",
        "DELETE": f"DELETE FROM {table}",
        "TRUNCATE": f"TRUNCATE {table}",
    }[do]


def outcome(ledger: Ledger, role: str, sql: str) -> str:
    """Try and take back: ``done``, ``no right``, or ``append only``."""
    with ledger.trial("CREATE ROLE somebody", f"SET LOCAL ROLE {role}") as connection:
        try:
            connection.exec_driver_sql(sql)
        except DBAPIError as error:
            match error.orig:
                case (
                    InsufficientPrivilege() | ObjectNotInPrerequisiteState()
                ):  # the latter: no view to write to
                    return "no right"
                case RaiseException() if "is append only" in str(error.orig):
                    return "append only"
                case IntegrityError():  # an empty row is no row; the right to add it was there
                    return "done"
                case other:
                    return repr(other)
    return "done"


@pytest.mark.parametrize(("role", "table", "do", "may"), CASES)
def test_a_role_may_do_what_it_needs_and_nothing_else(
    booked: Ledger, role: str, table: str, do: str, *, may: bool
) -> None:
    got = outcome(booked, role, statement(booked, table, do))
    if may:
        assert got == "done"
    elif role in ("gpuledger_owner", "postgres"):
        assert got == "append only"  # whatever rights it has
    else:
        assert got == "no right"


def test_every_kind_of_table_is_tried(booked: Ledger) -> None:
    found = booked.rows(
        "SELECT n.nspname || '.' || c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname IN ('ledger', 'side', 'telemetry', 'ledger_read') AND c.relkind IN ('r', 'p', 'v')"
        " AND NOT c.relispartition"
    )
    assert {table for (table,) in found} == {*HISTORY, *KEPT, *DECISIONS, *STATUS, *VIEWS, *OWN_VIEWS}


def test_all_that_there_is_belongs_to_the_owner_who_cannot_log_in(booked: Ledger) -> None:
    found = booked.rows(
        "SELECT DISTINCT pg_get_userbyid(o.owner), r.rolcanlogin FROM (SELECT c.relowner AS owner, c.relnamespace AS s"
        " FROM pg_class AS c UNION SELECT proowner, pronamespace FROM pg_proc UNION SELECT nspowner, oid FROM"
        " pg_namespace) AS o JOIN pg_namespace AS n ON n.oid = o.s JOIN pg_roles AS r ON r.oid = o.owner"
        " WHERE n.nspname IN ('identity', 'ledger', 'side', 'telemetry', 'ledger_read', 'warehouse')"
    )
    assert found == [("gpuledger_owner", False)]


@pytest.mark.parametrize("role", ["gpuledger_writer", "gpuledger_owner"])
def test_who_makes_partitions(booked: Ledger, role: str) -> None:
    assert outcome(booked, role, "SELECT ledger.make_partitions('2031-05-01Z')") == "done"


@pytest.mark.parametrize("role", ["gpuledger_reader", "somebody"])
def test_who_does_not(booked: Ledger, role: str) -> None:
    assert outcome(booked, role, "SELECT ledger.make_partitions('2031-05-01Z')") == "no right"
