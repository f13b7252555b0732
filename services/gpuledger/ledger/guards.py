"""Verify what keeps history from being changed: triggers, partitions, and what the writer may do."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from gpuledger.database.engine import WRITER_ROLE, Reader
from gpuledger.ledger.copying import driver

HISTORY = ("ledger.journal", "ledger.postings", "ledger.identities")
"""What is never changed."""

PARTITIONED = ("ledger.journal", "ledger.postings")
"""What has a partition for each month."""

_TRIGGERS = {
    "append_only_rows": "BEFORE DELETE OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change()",
    "append_only_table": "BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change()",
}

_FULL_NAME = "n.nspname || '.' || c.relname"
"""In full whatever the search path; ``c`` is the relation and ``n`` its schema."""


def faults(reader: Reader) -> list[str]:
    """Return what is missing, off or too permissive, each in one line that names its table."""
    parts = _partitions(reader)
    tables = [*HISTORY, *(part for of_one in parts.values() for part in of_one)]
    return [
        *_triggers(reader, tables),
        *_function(reader),
        *_strays(reader, parts),
        *_rights(reader, tables),
    ]


def _partitions(reader: Reader) -> dict[str, list[str]]:
    """Return the attached partitions of each partitioned table, sorted."""
    rows = driver(reader).execute(
        f"SELECT i.inhparent::regclass::text, {_FULL_NAME} FROM pg_inherits AS i"
        " JOIN pg_class AS c ON c.oid = i.inhrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        # A partition that somebody detaches concurrently is pending until that ends.
        " WHERE i.inhparent = ANY(%s::regclass[]) AND NOT i.inhdetachpending ORDER BY 1, 2",
        (list(PARTITIONED),),
    )
    parts: dict[str, list[str]] = {parent: [] for parent in PARTITIONED}
    for parent, part in rows:
        parts[parent].append(part)
    return parts


def _triggers(reader: Reader, tables: Sequence[str]) -> Iterator[str]:
    rows = driver(reader).execute(
        f"SELECT {_FULL_NAME}, t.tgname, t.tgenabled::text, pg_get_triggerdef(t.oid) FROM pg_trigger AS t"
        " JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE NOT t.tgisinternal"
    )
    found = {(table, name): (state, definition) for table, name, state, definition in rows}
    for table in tables:
        for name, does in _TRIGGERS.items():
            state, definition = found.get((table, name), (None, ""))
            if state is None:
                yield f"trigger {name} on {table} is missing"
            elif state != "A":
                yield f"trigger {name} on {table} is not ENABLE ALWAYS"
            elif not definition.endswith(does.format(table=table)):
                yield f"trigger {name} on {table} does something else: {definition}"


def _function(reader: Reader) -> Iterator[str]:
    source = driver(reader).execute(
        "SELECT prosrc FROM pg_proc WHERE oid = to_regprocedure('ledger.refuse_change()')"
    ).fetchone()  # fmt: skip
    if source is None or not re.match(r"\s*BEGIN\s+RAISE EXCEPTION\s", source[0]):
        yield "function ledger.refuse_change() does not refuse"


def _strays(reader: Reader, parts: dict[str, list[str]]) -> Iterator[str]:
    """Partitions that were taken off, wherever they are now, and months that only one of the two tables has."""
    for parent in PARTITIONED:
        rows = driver(reader).execute(
            f"SELECT {_FULL_NAME} FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
            " WHERE c.relkind IN ('r', 'p') AND c.relname ~ %s ORDER BY 1",
            (rf"^{parent.partition('.')[2]}_\d{{4,}}_\d\d$",),
        )
        for (table,) in rows.fetchall():
            if table not in parts[parent]:
                yield f"{table} is no partition of {parent}: it was detached"
    months: defaultdict[str, set[str]] = defaultdict(set)
    for parent, of_one in parts.items():
        for part in of_one:
            months[part.removeprefix(parent)].add(parent)
    for month, has in sorted(months.items()):
        yield from (f"partition {parent}{month} is missing" for parent in PARTITIONED if parent not in has)


def _rights(reader: Reader, tables: Sequence[str]) -> Iterator[str]:
    rows = driver(reader).execute(
        "SELECT t, p FROM pg_roles AS r, unnest(%s::text[]) AS t, unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE']) AS p"
        " WHERE r.rolname = %s AND CASE p WHEN 'UPDATE' THEN has_any_column_privilege(r.oid, t, p)"
        " ELSE has_table_privilege(r.oid, t, p) END ORDER BY 1, 2",
        (list(tables), WRITER_ROLE),
    )
    for table, privilege in rows.fetchall():
        yield f"the writer role holds {privilege} on {table}"
    owns = driver(reader).execute(
        f"SELECT {_FULL_NAME} FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE c.oid = ANY(%s::regclass[]) AND pg_has_role(%s, c.relowner, 'MEMBER') ORDER BY 1",
        (list(tables), WRITER_ROLE),
    )
    for (table,) in owns.fetchall():
        yield f"the writer role may act as the owner of {table}"
