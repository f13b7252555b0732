"""What the ledger and the telemetry know of runs without an end: reads for `lost_ends`, which decides."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.envelope import Event
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.clock import instant, seconds
from gpuledger.ledger import lost_ends, projections, store
from gpuledger.ledger.copying import driver
from gpuledger.ledger.facts import Known
from gpuledger.ledger.inventory import HostFact
from gpuledger.ledger.lost_ends import SILENCE_S, Claim, Evidence, Run
from gpuledger.ledger.sealing import BUCKET_S
from gpuledger.ledger.suspects import NOWHERE, Looked, suspects

RunKey = tuple[str, str]
"""Workload and run."""


def lost_end_events(
    connection: Reader | Writer, cluster: str, *, as_of_s: int, since_s: int = 0, looked: Looked = NOWHERE
) -> list[Event]:
    """Find the runs whose end was lost; return their estimated ends, which nothing has journalled yet.

    Open runs are closed where `lost_ends.lost_end` says so; runs that such an estimate closed before get a
    later one when they prove to have lived longer.

    Args:
        connection: Where everything is read; a Writer that holds the book's lock sees what it will append to.
        cluster: The cluster, which is also the book.
        as_of_s: The instant that is asked for, in seconds since the epoch.
        since_s: Starts of other runs and samples before it were looked at by an earlier search.
        looked: How far it had looked: runs of which nothing new can be said are left alone.
    """
    runs = _unended(connection, cluster, suspects(connection, cluster, as_of_s, since_s, looked), as_of_s)
    if not runs:
        return []
    hosts = sorted({name for run in runs for name in run.now.hosts})
    installed = _Inventory.read(connection, cluster, hosts)
    rivals = _rivals(connection, cluster, [run for run in runs if not run.guessed], as_of_s, since_s)
    downs = _downs(connection, cluster, hosts)
    named = _named(connection, cluster, runs, [as_of_s - SILENCE_S, since_s])
    missed = _missed(connection, cluster, _silent(runs, named, as_of_s), as_of_s)

    def evidence(run: Run) -> Evidence:
        seen = [at_s for at_s in (named.get(_key(run)), run.spoke_s) if at_s is not None]
        return Evidence(
            started_s=run.start.from_s,
            limit_s=run.limit_s,
            taken_s=_taken_s(run, rivals, installed),
            down_s=min((at for h in run.now.hosts for at in downs.get(h, ()) if at > run.now.from_s), default=None),
            seen_s=max(seen, default=None),
            missed_s=missed.get(_key(run), 0),
        )  # fmt: skip

    # Of those that are lost the last sample may be older than what was looked at; they are few.
    lost = [run for run in runs if not run.guessed and _key(run) not in named]
    lost = [run for run in lost if lost_ends.lost_end(evidence(run), as_of_s) is not None]
    if lost:
        named |= _named(connection, cluster, lost, [0])
    found = []
    for run in runs:
        known = evidence(run)
        stands_s = run.ended_s
        if stands_s is None:
            end_s = lost_ends.lost_end(known, as_of_s)
        else:
            end_s = lost_ends.revised_end(known, stands_s, as_of_s)
        if end_s is not None:
            found.append(lost_ends.ended_event(cluster, run, end_s))
    return found


def _key(run: Run) -> RunKey:
    return run.start.workload, run.start.run


def _unended(connection: Reader | Writer, cluster: str, names: Sequence[str], as_of_s: int) -> list[Run]:
    """Return the runs of workloads that are open, and those that an estimate of ours closed."""
    found = (run for facts in _facts(connection, cluster, names).values() for run in lost_ends.runs_of(facts))
    return [run for run in found if run.start.from_s < as_of_s and (run.ended_s is None or run.guessed)]


def _facts(connection: Reader | Writer, cluster: str, names: Sequence[str]) -> dict[str, list[Known]]:
    facts: dict[str, list[Known]] = {name: [] for name in names}
    for name, known in store.facts_of(connection, cluster, names):
        facts[name].append(known)
    return facts


def _rivals(
    connection: Reader | Writer, cluster: str, runs: Iterable[Run], as_of_s: int, since_s: int
) -> dict[str, list[Claim]]:
    """Return host -> what runs were given on it after one of these runs was, as far as it is new."""
    earliest: dict[str, int] = {}
    for run in runs:
        for name in run.now.hosts:
            earliest[name] = min(earliest.get(name, run.now.from_s), run.now.from_s)
    if not earliest:
        return {}
    rows = driver(connection).execute(
        """
        SELECT DISTINCT s.workload FROM ledger.segments AS s CROSS JOIN LATERAL unnest(s.hosts) AS h (host)
        JOIN unnest(%(hosts)s::text[], %(starts)s::timestamptz[]) AS o (host, from_at)
          ON o.host = h.host AND s.from_at > o.from_at
        WHERE s.book = %(book)s AND s.until_seq IS NULL AND s.from_at >= %(since)s AND s.from_at <= %(as_of)s
        ORDER BY s.workload
        """,
        {
            "hosts": list(earliest),
            "starts": [instant(at_s) for at_s in earliest.values()],
            "book": cluster,
            "since": instant(since_s),
            "as_of": instant(as_of_s),
        },
    )
    found: dict[str, list[Claim]] = {}
    for facts in _facts(connection, cluster, [workload for (workload,) in rows]).values():
        for run in lost_ends.runs_of(facts):
            if run.start.from_s <= as_of_s:
                for name in run.start.hosts & earliest.keys():
                    found.setdefault(name, []).append(run.start)
    return found


class _Inventory:
    """What was installed when, host by host."""

    def __init__(self, rows: Iterable[tuple[str, int, int, int | None]]) -> None:
        self._intervals: dict[str, list[tuple[int, int | None, int]]] = {}
        for name, gpus, from_s, to_s in rows:
            self._intervals.setdefault(name, []).append((from_s, to_s, gpus * GPU_MILLI))

    @classmethod
    def read(cls, connection: Reader | Writer, cluster: str, hosts: Sequence[str]) -> "_Inventory":
        rows = driver(connection).execute(
            "SELECT host, gpus, from_at, to_at FROM ledger.hosts"
            " WHERE book = %s AND until_seq IS NULL AND host = ANY(%s)",
            (cluster, list(hosts)),
        )
        return cls(
            (name, gpus, seconds(from_at), None if to_at is None else seconds(to_at))
            for name, gpus, from_at, to_at in rows
        )

    def at(self, hosts: Collection[str], at_s: int) -> dict[str, int]:
        """Return host -> milli-GPU installed at an instant; hosts that nobody registered are absent."""
        found: dict[str, int] = {}
        for name in hosts:
            for from_s, to_s, gpus_milli in self._intervals.get(name, ()):
                if from_s <= at_s and (to_s is None or at_s < to_s):
                    found[name] = found.get(name, 0) + gpus_milli
        return found


def _taken_s(run: Run, rivals: Mapping[str, Sequence[Claim]], installed: _Inventory) -> int | None:
    """Return when another run was first given GPUs that this one held."""
    starts = (
        other.from_s
        for name in run.now.hosts
        for other in rivals.get(name, ())
        if (other.workload, other.run) != _key(run)
        and other.from_s > run.now.from_s
        and lost_ends.excludes(run.now, other, installed.at(run.now.hosts | other.hosts, other.from_s))
    )
    return min(starts, default=None)


def _downs(connection: Reader | Writer, cluster: str, hosts: Sequence[str]) -> dict[str, list[int]]:
    facts: dict[str, list[HostFact]] = {}
    for fact in projections.host_facts(connection, cluster, hosts):
        facts.setdefault(fact.data.host, []).append(fact)
    return {name: lost_ends.downs(of) for name, of in facts.items()}


_NAMED = """
    WITH asked AS MATERIALIZED (
        SELECT * FROM unnest(%(workloads)s::text[], %(runs)s::text[]) AS a (workload, run))
    SELECT b.workload, b.run, extract(epoch FROM max(b.bucket_at))::bigint
    FROM telemetry.run_buckets AS b JOIN asked USING (workload, run)
    WHERE b.book = %(book)s AND b.bucket_at >= %(from)s
      -- Few runs are asked for, of all buckets: only theirs need be found out about.
      AND (b.handle IS NULL OR b.handle = ANY(ARRAY(
          SELECT h.handle FROM telemetry.handles AS h JOIN asked USING (workload, run) WHERE h.book = %(book)s)))
    GROUP BY b.workload, b.run
"""


def _named(
    connection: Reader | Writer, cluster: str, runs: Sequence[Run], since: Sequence[int]
) -> dict[RunKey, int]:
    """Return the end of the last bucket that names each run, or has a handle of it; those without one are absent.

    Args:
        connection: Where buckets are read.
        cluster: The cluster, which is also the book.
        runs: The runs; no sample from before their start says anything of them.
        since: From when to look, later instants first: most runs that are alive were named a moment ago.
    """
    found: dict[RunKey, int] = {}
    for since_s in since:
        pending = [run for run in runs if _key(run) not in found]
        if pending:
            from_s = max(since_s, min(run.start.from_s for run in pending))
            rows = driver(connection).execute(
                _NAMED,
                {
                    "workloads": [run.start.workload for run in pending],
                    "runs": [run.start.run for run in pending],
                    "book": cluster,
                    "from": instant(max(0, from_s - from_s % BUCKET_S)),
                },
            )
            found |= {(workload, run): at_s + BUCKET_S for workload, run, at_s in rows}
    return found


class _Silence(NamedTuple):
    """A run that no sample names any more.

    Args:
        key: The run.
        named_s: The end of the last bucket that names it.
        after_s: Its last evidence of life.
    """

    key: RunKey
    named_s: int
    after_s: int


def _silent(runs: Iterable[Run], named: Mapping[RunKey, int], as_of_s: int) -> list[_Silence]:
    """Return the runs whose samples stopped long enough ago; one that is suspended computes nothing to be seen."""
    found = (
        _Silence(_key(run), named[_key(run)], max(named[_key(run)], run.spoke_s or 0))
        for run in runs
        if not run.guessed and not run.suspended and _key(run) in named
    )
    return [silence for silence in found if silence.after_s <= as_of_s - SILENCE_S]


def _missed(
    connection: Reader | Writer, cluster: str, silences: Sequence[_Silence], as_of_s: int
) -> dict[RunKey, int]:
    """Return for how long a device that named a run last was sampled since its last sign of life, in seconds.

    Only the last hours before the instant are looked at: twice as long as it takes to miss a run.
    """
    if not silences:
        return {}
    first_s = as_of_s - 2 * SILENCE_S
    asked = [(*s.key, instant(s.named_s - BUCKET_S), instant(max(s.after_s, first_s))) for s in silences]
    workloads, runs, named, after = map(list, zip(*asked, strict=True))
    rows = driver(connection).execute(
        """
        WITH silent AS MATERIALIZED (
                 SELECT * FROM unnest(%(workloads)s::text[], %(runs)s::text[], %(named)s::timestamptz[],
                                      %(after)s::timestamptz[]) AS s (workload, run, named_at, after_at)),
             held AS MATERIALIZED (
                 SELECT DISTINCT s.workload, s.run, s.after_at, b.gpu
                 FROM silent AS s JOIN telemetry.run_buckets AS b USING (workload, run)
                 WHERE b.book = %(book)s AND b.bucket_at = s.named_at AND b.bucket_at = ANY(%(buckets)s)),
             sampled AS MATERIALIZED (
                 SELECT DISTINCT gpu, bucket_at FROM telemetry.buckets
                 WHERE book = %(book)s AND bucket_at >= %(first)s AND bucket_at < %(as_of)s)
        SELECT workload, run, max(buckets)
        FROM (SELECT h.workload, h.run, h.gpu, count(*) AS buckets
              FROM held AS h JOIN sampled AS b ON b.gpu = h.gpu AND b.bucket_at >= h.after_at
              GROUP BY h.workload, h.run, h.gpu) AS device
        GROUP BY workload, run
        """,
        {
            "workloads": workloads,
            "runs": runs,
            "named": named,
            "after": after,
            "buckets": sorted(set(named)),
            "book": cluster,
            "first": min(after),
            "as_of": instant(as_of_s),
        },
    )
    return {(workload, run): buckets * BUCKET_S for workload, run, buckets in rows}
