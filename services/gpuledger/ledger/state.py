"""A cluster at one instant, as the policy needs it: healthy GPUs, what is set aside, runs, queue.

Everything comes from segments, waits and hosts - from the ledger, never from samples. Each read can be repeated as
of a row of the cluster's book (``seq``): it says then what it said when that row was the newest.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.workload import Checkpointed, Resized, Started
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.ledger import queries, spells, store
from gpuledger.ledger.as_of import said
from gpuledger.ledger.copying import Texts, driver
from gpuledger.ledger.facts import Known
from gpuledger.ledger.requests import LATEST_S, Request, asked_at, requests_of


class OpenHold(NamedTuple):
    """What an account has set aside and not drained yet, on GPUs of one model and in one number.

    Args:
        account: Who pays.
        gpu_model: The model; None when nobody said.
        gpus_milli: Milli-GPU of each of the holds.
        seconds: For how long, all of them together.
    """

    account: str
    gpu_model: str | None
    gpus_milli: int
    seconds: int


class Running(NamedTuple):
    """A run that occupies GPUs at the instant.

    Args:
        hosts: Where it runs, each once; empty when nobody said.
        host_gpus_milli: What it occupies on each of them; None when nobody said.
        protected_until_s: Where the hold of its admission ends; None for a run that nobody admitted.
        minimum_runtime_s: As its workload asked when it started; None for a workload that nobody submitted.
        priority: As its workload asks at the instant.
        checkpointed_s: When it last said that its work is saved; None when it never did.
    """

    workload: str
    run: str
    account: str
    klass: str
    gpus_milli: int
    hosts: tuple[str, ...]
    host_gpus_milli: Mapping[str, int] | None
    started_s: int
    protected_until_s: int | None
    minimum_runtime_s: int | None
    priority: int
    checkpointed_s: int | None


class Host(NamedTuple):
    """A host that runs something at the instant: healthy, or being emptied."""

    host: str
    gpus: int
    gpu_model: str
    draining: bool


class Pending(NamedTuple):
    """A workload that is eligible and waits at the instant."""

    workload: str
    account: str
    gpus_milli: int
    gpu_model: str | None
    minimum_runtime_s: int
    priority: int
    submitted_s: int
    eligible_s: int


def open_holds(
    reader: Reader, cluster: str, at_s: int, *, seq: int | None = None, only: Sequence[str] | None = None
) -> list[OpenHold]:
    """Return what is set aside at the instant and not drained yet, for some workloads or all."""
    rows = driver(reader).execute(
        f"""
        SELECT coalesce(s.account, h.account), coalesce(s.gpu_model, h.gpu_model), coalesce(s.gpus_milli, h.gpus_milli),
               sum(extract(epoch FROM h.to_at)::bigint
                   - greatest(extract(epoch FROM h.from_at)::bigint, CASE WHEN h.run IS NULL THEN 0 ELSE %(at)s END)
               )::bigint
        FROM ledger.holds AS h
        LEFT JOIN ledger.segments AS s
            ON s.book = h.book AND s.workload = h.workload AND s.run = h.run AND {said("s", seq)}
               AND s.to_at IS NULL
        WHERE h.book = %(book)s AND {said("h", seq)}
          AND (%(only)s::text[] IS NULL OR h.workload = ANY(%(only)s::text[]))
          AND CASE WHEN h.run IS NULL THEN h.expires_at IS NULL OR h.expires_at > to_timestamp(%(at)s)
                   ELSE h.to_at > to_timestamp(%(at)s) AND s.class = 'allocated' END
        GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        """,
        {"book": cluster, "at": at_s, "seq": seq, "only": None if only is None else Texts(only)},
    )
    return [OpenHold(*row) for row in rows]


def admitted(reader: Reader, cluster: str, at_s: int, *, seq: int | None = None) -> set[str]:
    """Return the workloads that have not started and for which something is set aside at the instant."""
    rows = driver(reader).execute(
        f"SELECT workload FROM ledger.holds AS h WHERE h.book = %(book)s AND {said('h', seq)} AND h.run IS NULL"
        " AND (h.expires_at IS NULL OR h.expires_at > to_timestamp(%(at)s))",
        {"book": cluster, "at": at_s, "seq": seq},
    )
    return {workload for (workload,) in rows}


def healthy_models(reader: Reader, cluster: str, at_s: int, *, seq: int | None = None) -> dict[str, int]:
    """Return GPU model -> healthy milli-GPU of a cluster at an instant; a reservation makes none less healthy."""
    rows = driver(reader).execute(
        "SELECT gpu_model, sum(gpus)::bigint FROM ledger.hosts AS h"
        f" WHERE book = %(book)s AND {said('h', seq)} AND state IN ('healthy', 'reserved')"
        " AND from_at <= to_timestamp(%(at)s) AND (to_at IS NULL OR to_at > to_timestamp(%(at)s)) GROUP BY 1",
        {"book": cluster, "at": at_s, "seq": seq},
    )
    return {model: gpus * GPU_MILLI for model, gpus in rows}


def running(
    reader: Reader, cluster: str, at_s: int, *, seq: int | None = None, only: Sequence[str] | None = None
) -> list[Running]:
    """Return the runs that occupy GPUs at the instant, of some workloads or all, and what was asked for."""
    rows = (
        driver(reader)
        .execute(
            f"""
        SELECT workload, run, account, class, gpus_milli, hosts,
               -- A run is as old as its first segment: a resize or a change of class does not begin it anew.
               (SELECT extract(epoch FROM min(f.from_at))::bigint FROM ledger.segments AS f
                WHERE f.book = s.book AND f.workload = s.workload AND f.run = s.run AND {said("f", seq)}),
               -- Protection is the window that begins with the run; others are slices beyond it.
               (SELECT extract(epoch FROM h.to_at)::bigint FROM ledger.holds AS h
                WHERE h.book = s.book AND h.workload = s.workload AND h.run = s.run AND {said("h", seq)}
                  AND h.from_at = (SELECT min(f.from_at) FROM ledger.segments AS f
                                   WHERE f.book = s.book AND f.workload = s.workload AND f.run = s.run
                                     AND {said("f", seq)}))
        FROM ledger.segments AS s
        WHERE book = %(book)s AND {said("s", seq)}
          AND from_at <= to_timestamp(%(at)s) AND (to_at IS NULL OR to_at > to_timestamp(%(at)s))
          AND (%(only)s::text[] IS NULL OR workload = ANY(%(only)s::text[]))
        ORDER BY workload, run
        """,
            {"book": cluster, "at": at_s, "seq": seq, "only": None if only is None else Texts(only)},
        )
        .fetchall()
    )
    workloads = sorted({row[0] for row in rows})
    known = list(store.facts_of(reader, cluster, workloads, seq=seq))
    told = _requests(reader, cluster, known, seq) if known else {}
    saved, spread = _checkpoints(known, at_s), _spread(known, at_s)
    found = []
    for workload, run, account, klass, gpus_milli, hosts, started_s, protected_until_s in rows:
        at_start = asked_at(told.get(workload, ()), started_s)
        by_now = asked_at(told.get(workload, ()), at_s)
        where = tuple(sorted(set(hosts)))
        found.append(
            Running(
                workload,
                run,
                account,
                klass,
                gpus_milli,
                where,
                spread.get((workload, run, gpus_milli, where)),
                started_s,
                protected_until_s,
                None if at_start is None else at_start.minimum_runtime_s,
                (by_now.asked.priority if by_now else None) or 0,
                saved.get((workload, run)),
            )
        )
    return found


def hosts(reader: Reader, cluster: str, at_s: int, *, seq: int | None = None) -> list[Host]:
    """Return the hosts that run something at the instant, sorted by name."""
    rows = driver(reader).execute(
        f"""
        SELECT host, gpus, gpu_model, state = 'draining' FROM ledger.hosts AS h
        WHERE book = %(book)s AND {said("h", seq)} AND state IN ('healthy', 'draining')
          AND from_at <= to_timestamp(%(at)s) AND (to_at IS NULL OR to_at > to_timestamp(%(at)s))
        ORDER BY host
        """,
        {"book": cluster, "at": at_s, "seq": seq},
    )
    return [Host(*row) for row in rows]


def installed_models(reader: Reader, cluster: str, at_s: int) -> list[str]:
    """Return the GPU models of the hosts that are installed at the instant, well or not; sorted."""
    rows = driver(reader).execute(
        "SELECT DISTINCT gpu_model FROM ledger.hosts WHERE book = %(book)s AND until_seq IS NULL"
        " AND from_at <= to_timestamp(%(at)s) AND (to_at IS NULL OR to_at > to_timestamp(%(at)s)) ORDER BY 1",
        {"book": cluster, "at": at_s},
    )
    return [model for (model,) in rows]


def largest_host_milli(reader: Reader, cluster: str, at_s: int, *, seq: int | None = None) -> int | None:
    """Return the milli-GPU of the largest host that is installed at the instant, well or not; None without any."""
    row = driver(reader).execute(
        f"""
        SELECT max(gpus)::bigint FROM (
            SELECT sum(gpus) AS gpus FROM ledger.hosts AS h WHERE book = %(book)s AND {said("h", seq)}
              AND from_at <= to_timestamp(%(at)s) AND (to_at IS NULL OR to_at > to_timestamp(%(at)s))
            GROUP BY host) AS installed
        """,
        {"book": cluster, "at": at_s, "seq": seq},
    ).fetchone()  # fmt: skip
    return None if row is None or row[0] is None else row[0] * GPU_MILLI


def minimum_runtimes(reader: Reader | Writer, cluster: str, workloads: Sequence[str]) -> dict[str, int]:
    """Return the minimum runtime that each workload asks for by now, or that its mapping rule gives."""
    known = list(store.facts_of(reader, cluster, workloads))
    told = _requests(reader, cluster, known) if known else {}
    asked = {name: asked_at(requests, LATEST_S) for name, requests in told.items()}
    return {name: request.minimum_runtime_s for name, request in asked.items() if request is not None}


def asked(
    reader: Reader, cluster: str, workloads: Sequence[str], at_s: int, *, seq: int | None = None
) -> list[Pending]:
    """Return what some workloads ask for at the instant, as those that wait do; eligible then."""
    known = list(store.facts_of(reader, cluster, sorted(set(workloads)), seq=seq))
    told = _requests(reader, cluster, known, seq) if known else {}
    found = []
    for name, requests in sorted(told.items()):
        request = asked_at(requests, at_s)
        if request is not None:
            wishes = request.asked
            found.append(
                Pending(
                    name,
                    request.meaning.account,
                    wishes.gpus_milli,
                    wishes.gpu_model,
                    request.minimum_runtime_s,
                    wishes.priority or 0,
                    request.at_s,
                    at_s,
                )
            )
    return found


def ending(
    reader: Reader | Writer, cluster: str, workloads: Sequence[str], at_s: int, *, seq: int | None = None
) -> set[str]:
    """Return those of some workloads whose runs cannot go on where one was stopped: they end then."""
    known = list(store.facts_of(reader, cluster, sorted(set(workloads)), seq=seq))
    told = _requests(reader, cluster, known, seq) if known else {}
    asked = {name: asked_at(requests, at_s) for name, requests in told.items()}
    return {
        name
        for name, request in asked.items()
        if request is not None
        and not (request.meaning.resumable if request.asked.resumable is None else request.asked.resumable)
    }


def _requests(
    reader: Reader | Writer, cluster: str, facts: Iterable[tuple[str, Known]], seq: int | None = None
) -> dict[str, Sequence[Request]]:
    """Return workload -> what it asked for as time went by."""
    rules = queries.mapping(reader, cluster, seq)
    of: dict[str, list[Known]] = {}
    for name, known in facts:
        of.setdefault(name, []).append(known)
    return {name: requests_of(own, rules) for name, own in of.items()}


def _checkpoints(facts: Iterable[tuple[str, Known]], at_s: int) -> dict[tuple[str, str], int]:
    """Return when each run last saved its work, up to the instant."""
    saved: dict[tuple[str, str], int] = {}
    for name, known in facts:
        if isinstance(known.data, Checkpointed) and known.at_s <= at_s:
            run = (name, known.data.run)
            saved[run] = max(known.at_s, saved.get(run, known.at_s))
    return saved


def pending(
    reader: Reader,
    cluster: str,
    at_s: int,
    *,
    only: Sequence[str] | None = None,
    seq: int | None = None,
) -> list[Pending]:
    """Return the workloads that are eligible and wait at the instant: all, or some of them."""
    rows = driver(reader).execute(
        f"""
        SELECT DISTINCT ON (workload) workload, account, gpus_milli, gpu_model, minimum_runtime_s, priority,
               extract(epoch FROM submitted_at)::bigint, extract(epoch FROM coalesce(began_at, from_at))::bigint
        FROM ledger.waits AS w
        WHERE book = %(book)s AND {said("w", seq)}
          AND from_at <= to_timestamp(%(at)s) AND (to_at IS NULL OR to_at > to_timestamp(%(at)s))
          AND (%(only)s::text[] IS NULL OR workload = ANY(%(only)s::text[]))
        ORDER BY workload, from_at DESC
        """,
        {"book": cluster, "at": at_s, "seq": seq, "only": None if only is None else Texts(only)},
    )
    return [Pending(*row) for row in rows]


def _spread(
    facts: Iterable[tuple[str, Known]], at_s: int
) -> dict[tuple[str, str, int, tuple[str, ...]], Mapping[str, int]]:
    """Return what runs of a size on certain hosts occupy on each at the instant, as the facts that count say.

    Amounts that do not add up to the size, or are nothing on some host, say nothing.
    """
    claims: dict[tuple[str, str], list[Known]] = {}
    for name, known in facts:
        data = known.data
        if isinstance(data, Started) or (isinstance(data, Resized) and known.at_s <= at_s):
            claims.setdefault((name, data.run), []).append(known)
    found: dict[tuple[str, str, int, tuple[str, ...]], Mapping[str, int]] = {}
    for (name, run), of in claims.items():
        for _, size in spells.sizes(of):
            each = spells.on_each(size)
            if each is not None and all(each.values()):
                found[name, run, size.gpus_milli, tuple(sorted(each))] = each
    return found
