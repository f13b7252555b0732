"""Where a name is in a database, and what its erasure must not change."""

from tests.integration.ledger.books import Ledger

from gpuledger.database.engine import reading
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger import rebuild
from gpuledger.ledger.audit import verify


def found(ledger: Ledger, *needles: bytes) -> list[str]:
    """Return every column of every table of every schema in which one of the needles occurs."""
    columns = ledger.rows(
        "SELECT table_schema, table_name, column_name, data_type, udt_name FROM information_schema.columns"
        " JOIN information_schema.tables USING (table_schema, table_name) WHERE table_type = 'BASE TABLE'"
        " AND table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2, 3"
    )
    kinds = {kind for *_, kind, _ in columns}
    assert {"text", "bytea", "json", "jsonb", "ARRAY"} <= kinds, "the search sees what it must"
    hits = []
    for schema, table, column, kind, _ in columns:
        value = column if kind == "bytea" else f"convert_to({column}::text, 'UTF8')"
        hits += [
            f"{schema}.{table}.{column}"
            for needle in needles
            if ledger.value(
                f"SELECT count(*) FROM {schema}.{table} WHERE position(:n IN {value}) > 0", n=needle
            )
        ]
    return hits


def seen(ledger: Ledger) -> tuple[object, ...]:
    """Return what must not change: heads, digest, balances, and that everything verifies."""
    with reading(ledger.engine) as reader:
        assert verify(reader).ok
        assert rebuild.check(reader, Calendar()).ok
    return (
        ledger.rows("SELECT * FROM ledger.books ORDER BY book"),
        ledger.digest(),
        ledger.rows("SELECT * FROM ledger.balances ORDER BY 1, 2, 3, 4, 5, 6"),
        ledger.used("user"),
        ledger.rows("SELECT j::text FROM ledger.journal AS j ORDER BY book, seq"),
    )
