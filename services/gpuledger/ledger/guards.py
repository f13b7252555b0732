"""Verify what keeps history from being changed: triggers and their function, partitions, owner, and what roles may do.

Whoever holds the database can replace anything by something that looks like it. So nothing is told by its name or
its beginning: what PostgreSQL says of an object must be what the migrations made, in full, and nothing is besides.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from gpuledger.database.engine import WRITER_ROLE, Reader
from gpuledger.ledger.copying import driver

HISTORY = ("ledger.journal", "ledger.postings", "ledger.identities")
"""What is never changed."""

PARTITIONED = ("ledger.journal", "ledger.postings")
"""What has a partition for each month."""

OWNER_ROLE = "gpuledger_owner"
"""Owns everything, and nobody logs in as it."""

READER_ROLE = "gpuledger_reader"

_TRIGGERS = {
    "append_only_rows": "BEFORE DELETE OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change()",
    "append_only_table": "BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change()",
}
_FUNCTIONS = {
    "ledger.refuse_change()": "7418bb559f31a98e1d3be5db40d4abac001c7e2eb2b1c7b5a042e586ecb28056",
    "ledger.make_partitions(timestamptz)": "d282e5a1fdb687bb8dcf3849ca275a1504196f7937a3e2937a952eeaf4aa1aba",
}
"""Signature -> SHA-256 over what ``pg_get_functiondef`` prints: language, settings, whose rights it has, and body."""

_CONSTRAINTS = {
    "ledger.journal": ("PRIMARY KEY (book, seq, recorded_at)",),
    "ledger.postings": ("CHECK ((amount > 0))", "PRIMARY KEY (book, seq, n, recorded_at)"),
    "ledger.identities": ("PRIMARY KEY (book, event_id, source, digest)",),
}
_PARTITION_KEY = "RANGE (recorded_at)"
_CHANGES = ("UPDATE", "DELETE", "TRUNCATE", "TRIGGER", "REFERENCES")
"""Rights on history that no role but the owner holds."""

_FULL_NAME = "n.nspname || '.' || c.relname"
"""In full whatever the search path; ``c`` is the relation and ``n`` its schema."""

_RELATION = "pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"


def faults(reader: Reader) -> list[str]:
    """Return what is missing, off, replaced, too much or too permissive, each in one line that names its table."""
    parts = _partitions(reader)
    tables = {table: table for table in HISTORY}
    tables |= {part: parent for parent, of_one in parts.items() for part in of_one}
    present = [table for table in tables if _rows(reader, "SELECT to_regclass(%s)", table) != [(None,)]]
    return [
        *(f"table {table} is missing" for table in tables if table not in present),
        *_triggers(reader, present),
        *_functions(reader),
        *_rules(reader, present),
        *_tables(reader, tables, present),
        *_constraints(reader, tables, present),
        *_bounds(reader, parts),
        *_strays(reader, parts),
        *_rights(reader, present),
    ]


def _rows(reader: Reader, query: str, *values: object) -> list[tuple[Any, ...]]:
    return driver(reader).execute(query, values).fetchall()


def _partitions(reader: Reader) -> dict[str, list[str]]:
    """Return the attached partitions of each partitioned table, sorted, and of identities what inherits from them."""
    rows = _rows(
        reader,
        f"SELECT pn.nspname || '.' || p.relname, {_FULL_NAME} FROM {_RELATION}"
        " JOIN pg_inherits AS i ON c.oid = i.inhrelid JOIN pg_class AS p ON p.oid = i.inhparent"
        " JOIN pg_namespace AS pn ON pn.oid = p.relnamespace"
        # A partition that somebody detaches concurrently is pending until that ends.
        " WHERE pn.nspname || '.' || p.relname = ANY(%s) AND NOT i.inhdetachpending ORDER BY 1, 2",
        list(HISTORY),
    )
    parts: dict[str, list[str]] = {parent: [] for parent in HISTORY}
    for parent, part in rows:
        parts[parent].append(part)
    return parts


def _triggers(reader: Reader, tables: Sequence[str]) -> Iterator[str]:
    """Each table has its two guards, on for every session, and no other trigger, not even one of a foreign key."""
    rows = _rows(
        reader,
        f"SELECT {_FULL_NAME}, t.tgname, t.tgenabled::text, pg_get_triggerdef(t.oid),"
        " t.tgfoid = to_regprocedure('ledger.refuse_change()')"
        f" FROM {_RELATION} JOIN pg_trigger AS t ON t.tgrelid = c.oid WHERE {_FULL_NAME} = ANY(%s) ORDER BY 1, 2",
        list(tables),
    )
    found = {(table, name): said for table, name, *said in rows}
    for table in tables:
        for name, does in _TRIGGERS.items():
            state, definition, refuses = found.pop((table, name), (None, "", False))
            whole = f"CREATE TRIGGER {name} {does.format(table=table)}"
            if state is None:
                yield f"trigger {name} on {table} is missing"
            elif state != "A":
                yield f"trigger {name} on {table} is not ENABLE ALWAYS"
            # The name of a function is printed without its schema where that is on the search path.
            elif not refuses or definition not in (whole, whole.replace("FUNCTION ledger.", "FUNCTION ")):
                yield f"trigger {name} on {table} does something else: {definition}"
    for (table, name), (_, definition, _) in found.items():
        yield f"trigger {name} on {table} is none of the ledger's: {definition}"


def _functions(reader: Reader) -> Iterator[str]:
    for signature, digest in _FUNCTIONS.items():
        ((definition, owner),) = _rows(
            reader,
            "SELECT pg_get_functiondef(p.oid), pg_get_userbyid(p.proowner)"
            " FROM (SELECT to_regprocedure(%s) AS oid) AS f LEFT JOIN pg_proc AS p USING (oid)",
            signature,
        )
        if definition is None:
            yield f"function {signature} is missing"
        elif hashlib.sha256(definition.encode()).hexdigest() != digest:
            yield f"function {signature} is not the one that the migrations made"
        elif owner != OWNER_ROLE:
            yield f"function {signature} belongs to {owner}, not to {OWNER_ROLE}"


def _rules(reader: Reader, tables: Sequence[str]) -> Iterator[str]:
    """A rule does something else instead of what is asked, before any trigger; history has none."""
    for table, definition in _rows(
        reader,
        f"SELECT {_FULL_NAME}, pg_get_ruledef(r.oid) FROM {_RELATION} JOIN pg_rewrite AS r ON r.ev_class = c.oid"
        f" WHERE {_FULL_NAME} = ANY(%s) ORDER BY 1, r.rulename",
        list(tables),
    ):
        yield f"a rule on {table} does something else: {definition}"


def _tables(reader: Reader, tables: dict[str, str], present: Sequence[str]) -> Iterator[str]:
    """What each table is: whose, of which kind, kept through a crash, and shown whole to whoever may read it."""
    for table, kind, persistence, owner, secured, policies, key in _rows(
        reader,
        f"SELECT {_FULL_NAME}, c.relkind::text, c.relpersistence::text, pg_get_userbyid(c.relowner),"
        " c.relrowsecurity OR c.relforcerowsecurity, (SELECT count(*) FROM pg_policy WHERE polrelid = c.oid),"
        f" pg_get_partkeydef(c.oid) FROM {_RELATION} WHERE {_FULL_NAME} = ANY(%s) ORDER BY 1",
        list(present),
    ):
        is_parent = table in PARTITIONED
        if kind != ("p" if is_parent else "r") or (is_parent and key != _PARTITION_KEY):
            yield f"{table} is not the kind of table that the migrations made"
        if persistence != "p":
            yield f"{table} is not logged: a crash empties it"
        if owner != OWNER_ROLE:
            yield f"{table} belongs to {owner}, not to {OWNER_ROLE}"
        if secured or policies:
            yield f"{table} has row security: rows can be hidden"
        if tables[table] != table and tables[table] not in PARTITIONED:
            yield f"{table} inherits from {tables[table]}: its rows are taken for history"
    for schema, owner in _rows(
        reader, "SELECT nspname, pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'ledger'"
    ):
        if owner != OWNER_ROLE:
            yield f"schema {schema} belongs to {owner}, not to {OWNER_ROLE}"


def _constraints(reader: Reader, tables: dict[str, str], present: Sequence[str]) -> Iterator[str]:
    """Keys, and what a row must fulfil; not whether columns may be null, which servers tell in different ways."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for table, definition in _rows(
        reader,
        f"SELECT {_FULL_NAME}, pg_get_constraintdef(o.oid) FROM {_RELATION}"
        " JOIN pg_constraint AS o ON o.conrelid = c.oid AND o.contype NOT IN ('n', 't')"
        f" WHERE {_FULL_NAME} = ANY(%s) ORDER BY 1, 2",
        list(present),
    ):
        found[table].append(definition)
    for table in present:
        wanted = _CONSTRAINTS[tables[table]]
        yield from (f"constraint of {table} is missing: {one}" for one in wanted if one not in found[table])
        yield from (
            f"constraint of {table} is none of the ledger's: {one}"
            for one in found[table]
            if one not in wanted
        )


def _bounds(reader: Reader, parts: dict[str, list[str]]) -> Iterator[str]:
    """A partition holds the month that its name says, in UTC, and lies in the schema of its parent."""
    for parent in PARTITIONED:
        for part, bound, *ends in _rows(
            reader,
            "SELECT part, bound, to_char(ends[1]::timestamptz AT TIME ZONE 'UTC', 'YYYY_MM DD HH24:MI:SS.US'),"
            " to_char(ends[2]::timestamptz AT TIME ZONE 'UTC' - interval '1 month', 'YYYY_MM DD HH24:MI:SS.US')"
            f" FROM (SELECT {_FULL_NAME} AS part, b.bound, regexp_match(b.bound,"
            r" '^FOR VALUES FROM \(''([^'']*)''\) TO \(''([^'']*)''\)$') AS ends"
            f" FROM {_RELATION} CROSS JOIN LATERAL pg_get_expr(c.relpartbound, c.oid) AS b (bound)"
            f" WHERE {_FULL_NAME} = ANY(%s)) AS bounds ORDER BY 1",
            parts[parent],
        ):
            month = part.removeprefix(f"{parent}_")
            if set(ends) != {f"{month} 01 00:00:00.000000"}:
                yield f"partition {part} holds something else than its month: {bound}"


def _strays(reader: Reader, parts: dict[str, list[str]]) -> Iterator[str]:
    """Partitions that were taken off, wherever they are now, and months that only one of the two tables has."""
    for parent in PARTITIONED:
        for (table,) in _rows(
            reader,
            f"SELECT {_FULL_NAME} FROM {_RELATION} WHERE c.relkind IN ('r', 'p') AND c.relname ~ %s ORDER BY 1",
            rf"^{parent.partition('.')[2]}_\d{{4,}}_\d\d$",
        ):
            if table not in parts[parent]:
                yield f"{table} is no partition of {parent}: it was detached"
    months: defaultdict[str, set[str]] = defaultdict(set)
    for parent in PARTITIONED:
        for part in parts[parent]:
            months[part.removeprefix(parent)].add(parent)
    for month, has in sorted(months.items()):
        yield from (f"partition {parent}{month} is missing" for parent in PARTITIONED if parent not in has)


def _rights(reader: Reader, tables: Sequence[str]) -> Iterator[str]:
    roles = {WRITER_ROLE: "writer", READER_ROLE: "reader"}
    for table, privilege, role in _rows(
        reader,
        "SELECT t, p, r.rolname FROM pg_roles AS r, unnest(%s::text[]) AS t, unnest(%s::text[]) AS p"
        " WHERE r.rolname = ANY(%s) AND CASE WHEN p IN ('UPDATE', 'REFERENCES')"
        " THEN has_any_column_privilege(r.oid, t, p) ELSE has_table_privilege(r.oid, t, p) END ORDER BY 1, 2, 3",
        list(tables), list(_CHANGES), list(roles),
    ):  # fmt: skip
        yield f"the {roles[role]} role holds {privilege} on {table}"
    for table, role in _rows(
        reader,
        f"SELECT {_FULL_NAME}, r.rolname FROM {_RELATION} JOIN pg_roles AS r ON r.rolname = ANY(%s)"
        f" WHERE {_FULL_NAME} = ANY(%s) AND pg_has_role(r.oid, c.relowner, 'MEMBER') ORDER BY 1, 2",
        list(roles), list(tables),
    ):  # fmt: skip
        yield f"the {roles[role]} role may act as the owner of {table}"
