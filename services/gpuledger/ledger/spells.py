"""What was told of work from a moment on and is not kept in segments: its labels, its GPUs on each host.

Segments hold what is charged. By what else their time is to be told is read from the facts when somebody asks, so that
writing costs nothing. Facts count as for segments (law 3), and a spell ends where the next begins, in a segment too.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import decode_data
from gpuledger.events.workload import Resized, Started
from gpuledger.kernel.clock import seconds
from gpuledger.ledger import queries
from gpuledger.ledger.copying import driver
from gpuledger.ledger.facts import Known, winner
from gpuledger.ledger.requests import requests_of

FIRST_S, LAST_S = -(2**40), 2**40
"""Before and after every segment; seconds since the epoch."""


class Spell(NamedTuple):
    """What was told of a run over ``[from_s, to_s)``.

    Args:
        run: The run; None for all of the workload.
        said: What was told: the value of a label, or ``milli_by_host`` written down; None where nothing was. The spells
            of a run leave no gap.
    """

    book: str
    workload: str
    run: str | None
    from_s: int
    to_s: int
    said: str | None


class Asked(NamedTuple):
    """Whose spells: of workloads that have segments on a cluster in ``[from_s, to_s)``.

    Args:
        cluster: One cluster, or all.
        from_s: The beginning, unless given.
        as_of: Recorded time: what the books said then; now unless given.
    """

    cluster: str | None
    from_s: int | None
    to_s: int
    as_of: dt.datetime | None = None


def label_spells(reader: Reader, asked: Asked, label: str) -> list[Spell]:
    """Return from when on each workload had which value of a label; an empty one is none.

    The submission's holds from the beginning, that of an update from the update's time on (docs/decisions/0067).
    Workloads that never had it are absent.
    """
    found: list[Spell] = []
    facts = _facts(reader, asked, ("workload.submitted", "workload.updated"), '"labels"', "")
    for (book, workload), known in facts.items():
        requests = requests_of(known)
        values = [(request.understood.asked.labels or {}).get(label) or None for request in requests]
        froms = [FIRST_S, *(request.from_s for request in requests[1:])]
        found += _spells((book, workload, None), list(zip(froms, values, strict=False)))
    return found


def host_spells(reader: Reader, asked: Asked) -> list[Spell]:
    """Return from when on each run held how many GPUs on which of several hosts.

    Told by a start from the beginning, by a resize from its time on. Amounts say nothing where they do not add up to
    the size of the run or name other hosts than it is on. Runs of which nobody told are absent.
    """
    several = "AND cardinality(s.hosts) > 1"
    return host_spells_of(
        _facts(reader, asked, ("workload.started", "workload.resized"), '"host_gpus_milli"', several)
    )


def host_spells_of(facts: Mapping[tuple[str, str], Sequence[Known]]) -> list[Spell]:
    """Return the same from (book, workload) -> its starts and resizes, in sequence."""
    found: list[Spell] = []
    for (book, workload), known in facts.items():
        claims: dict[str, list[Known]] = {}
        for fact in known:
            assert isinstance(fact.data, Started | Resized)  # noqa: S101 - the query selected the types
            claims.setdefault(fact.data.run, []).append(fact)
        for run, of in claims.items():
            said = [(from_s, _written(on_each(data))) for from_s, data in sizes(of)]
            found += _spells((book, workload, run), said)
    return found


def _spells(of: tuple[str, str, str | None], told: Sequence[tuple[int, str | None]]) -> Iterator[Spell]:
    """Yield a spell for each thing that was told, in order, up to the next; none where all is None."""
    if any(said is not None for _, said in told):
        ends = [*(from_s for from_s, _ in told[1:]), LAST_S]
        for (from_s, said), to_s in zip(told, ends, strict=True):
            yield Spell(*of, from_s, to_s, said)


class Table(NamedTuple):
    """Spells as the table ``said`` of a query: its definition, for after WITH, and the values that it wants."""

    sql: str
    values: dict[str, list[Any]]


_NOTHING = """said AS (SELECT NULL::text AS book, NULL::text AS workload, NULL::text AS run,
                        NULL::bigint AS from_s, NULL::bigint AS to_s, NULL::text AS said WHERE false)"""
_TABLE = """said AS (SELECT * FROM unnest(%(said_books)s::text[], %(said_workloads)s::text[], %(said_runs)s::text[],
                                      %(said_froms)s::bigint[], %(said_tos)s::bigint[], %(said)s::text[])
                     AS said (book, workload, run, from_s, to_s, said))"""
_VALUES = ("said_books", "said_workloads", "said_runs", "said_froms", "said_tos", "said")


def table(found: Sequence[Spell]) -> Table:
    """Return spells as a table of a query: ``book``, ``workload``, ``run``, ``from_s``, ``to_s`` and ``said``."""
    if not found:
        return Table(_NOTHING, {})
    columns = zip(*found, strict=True)
    return Table(_TABLE, {name: list(column) for name, column in zip(_VALUES, columns, strict=True)})


def milli_by_host(said: str) -> dict[str, int]:
    """Return host -> milli-GPU, as a spell of ``host_spells`` says."""
    return msgspec.json.decode(said, type=dict[str, int])


def sizes(claims: Sequence[Known]) -> Iterator[tuple[int, Started | Resized]]:
    """Yield from when on which start or resize of a run counts, in order.

    Facts count as for segments: of contradictory ones the one of the highest rank, and a resize from its instant on.

    Args:
        claims: All starts of the run, and its resizes as far as they are to count.
    """
    moments: dict[int, list[Known]] = {}
    for fact in claims:
        moments.setdefault(fact.at_s if isinstance(fact.data, Resized) else FIRST_S, []).append(fact)
    for from_s, candidates in sorted(moments.items()):
        counts = winner(candidates)
        assert counts is not None  # noqa: S101 - there is one at least
        assert isinstance(counts.data, Started | Resized)  # noqa: S101 - narrows the type
        yield from_s, counts.data


def on_each(data: Started | Resized) -> Mapping[str, int] | None:
    """Return what a run occupies on each of its hosts, in milli-GPU; None where it is not told, or not its size."""
    each = data.host_gpus_milli
    if not each or each.keys() != set(data.hosts) or sum(each.values()) != data.gpus_milli:
        return None
    return each


def _written(each: Mapping[str, int] | None) -> str | None:
    return None if each is None else msgspec.json.encode(dict(sorted(each.items()))).decode()


def _facts(
    reader: Reader, asked: Asked, types: Sequence[str], key: str, which: str
) -> Mapping[tuple[str, str], list[Known]]:
    """Return (book, workload) -> its facts of some types, in sequence, where one of them has a key at least.

    Args:
        reader: A snapshot.
        asked: Of which workloads.
        types: The types of the facts.
        key: The key as it stands in the body of a fact; whoever writes it as a value is read in vain.
        which: A further condition on segments ``s``.
    """
    as_of_sql, values = queries.in_force(reader, asked.as_of)
    upto = ""
    if asked.as_of is not None:
        upto = (
            "AND j.seq <= (SELECT v.seq FROM unnest(%(books)s::text[], %(seqs)s::bigint[]) AS v (book, seq)"
            " WHERE v.book = j.book)"
        )
    sql = f"""
        WITH ran AS (SELECT DISTINCT s.book, s.workload FROM ledger.segments AS s
                     WHERE (%(cluster)s::text IS NULL OR s.book = %(cluster)s) AND {as_of_sql} {which}
                       AND s.from_at < to_timestamp(%(to)s)
                       AND (%(from)s::bigint IS NULL OR s.to_at IS NULL OR s.to_at > to_timestamp(%(from)s))),
             told AS (SELECT DISTINCT j.book, j.workload FROM ran JOIN ledger.journal AS j USING (book, workload)
                      WHERE j.type = ANY(%(types)s) AND strpos(j.body::text, %(key)s) > 0 {upto})
        SELECT j.book, j.workload, j.type, j.body::text, j.effective_at, j.source, j.digest
        FROM told JOIN ledger.journal AS j USING (book, workload)
        WHERE j.type = ANY(%(types)s) {upto}
        ORDER BY j.book, j.seq
    """
    rows = driver(reader).execute(
        sql,
        {
            "cluster": asked.cluster, "from": asked.from_s, "to": asked.to_s,
            "types": list(types), "key": key, **values,
        },
    )  # fmt: skip
    found: dict[tuple[str, str], list[Known]] = {}
    for book, workload, type_, body, effective_at, source, digest in rows:
        known = Known(decode_data(type_, body), seconds(effective_at), source, bytes(digest))
        found.setdefault((book, workload), []).append(known)
    return found
