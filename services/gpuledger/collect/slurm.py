"""``gpuledger collect slurm``: what accounting, the queue and the nodes say now, booked without gaps or repeats.

Accounting is asked for overlapping windows, because records reach it late: what was told before is known by its
identity. How far it was read is noted once everything up to there is booked, so that a collector that was killed
asks again rather than leaves something out. A run that the ledger holds open and that no window lists ended before
them all: it is asked for by its number.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from gpuledger.collect.cursor import Cursor
from gpuledger.collect.polled import PolledSink
from gpuledger.collect.programs import CommandFailed, Programs
from gpuledger.database.engine import reading
from gpuledger.events.envelope import make
from gpuledger.events.heartbeat import Heartbeat
from gpuledger.ingest.importer import ImportReport, Sink, run_import
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.accounts import escape_part
from gpuledger.kernel.clock import instant, seconds
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.queries import open_workloads
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source

DAY_S = 86_400

OVERLAP_S = 3600
"""How far back a window reaches behind what was read: slurmctld may be cut off from accounting for a while."""

AHEAD_S = 366 * DAY_S
"""A job that may not start before a later day is listed only when the window reaches that day."""

HEARTBEAT_S = 300
"""How often the ledger is told that all is known, at the most: each sign of life is a row for ever."""

JOBS_PER_CALL = 200

ACCOUNTING, QUEUE, NODES = "slurm-sacct-json", "slurm-squeue-json", "slurm-nodes"


@dataclass(slots=True)
class Polled:
    """What one look at a scheduler found.

    Args:
        reports: What came of each kind of answer, by the name of its source.
        failures: The commands that gave none.
    """

    reports: dict[str, ImportReport] = field(default_factory=dict)
    failures: list[CommandFailed] = field(default_factory=list)

    def add(self, name: str, report: ImportReport) -> None:
        """Add what one answer held."""
        total = self.reports.setdefault(name, ImportReport())
        total.records += report.records
        total.accepted += report.accepted
        total.repeated += report.repeated
        total.dead_lettered += report.dead_lettered
        total.anomalies += report.anomalies
        total.faults += report.faults


class SlurmCollector:
    """Looks at one Slurm cluster.

    Args:
        intake: The ledger.
        sink: Where events go: straight into the ledger, or onto their topic.
        programs: Runs Slurm's commands.
        options: What is known of the records.
        cluster: The cluster.
        since_s: From when on records are read the first time.
        overlap_s: How far each window reaches back behind what was read.
    """

    def __init__(
        self,
        intake: Intake,
        sink: Sink,
        programs: Programs,
        options: ImportOptions,
        *,
        cluster: str,
        since_s: int,
        overlap_s: int = OVERLAP_S,
    ) -> None:
        self._intake, self._programs, self._cluster = intake, programs, cluster
        self._options = replace(options, cluster=cluster, timezone=None)
        self._sink = PolledSink(sink)
        self._cursor = Cursor(intake.engine, f"sacct/{cluster}")
        self._since_s, self._overlap_s = since_s, overlap_s
        self._asked: dict[str, int] = {}
        self._beat_s = 0

    def poll(self) -> Polled:
        """Look once and book what is new; a command that fails does not keep the others from being asked.

        Raises:
            Fenced: When another collector of this cluster took over.
            Refused: When a command is not installed.
            Unavailable: When the database or broker cannot be reached.
        """
        now_s = seconds(self._intake.clock.now())
        polled = Polled()
        self._sink.begin()
        for look in (self._accounting, self._queue, self._nodes):
            try:
                look(polled, now_s)
            except CommandFailed as error:
                polled.failures.append(error)
        if not polled.failures and now_s >= self._beat_s + HEARTBEAT_S:
            self._tell_alive(now_s)
        self._intake.open_periods([self._cluster])
        return polled

    def _accounting(self, polled: Polled, now_s: int) -> None:
        begin_s = max(self._cursor.at_s - self._overlap_s, 0) if self._cursor.at_s else self._since_s
        for from_s, to_s in windows(begin_s, now_s):
            until_s = to_s if to_s < now_s else now_s + AHEAD_S
            self._book(polled, ACCOUNTING, sacct("-S", local(from_s), "-E", local(until_s)), now_s)
            self._cursor.advance(to_s)
        for jobs in batches(self._stragglers(now_s), JOBS_PER_CALL):
            self._book(polled, ACCOUNTING, sacct("-j", ",".join(jobs)), now_s)

    def _queue(self, polled: Polled, now_s: int) -> None:
        self._book(polled, QUEUE, ("squeue", "--all", "--json"), now_s)

    def _nodes(self, polled: Polled, now_s: int) -> None:
        self._book(polled, NODES, ("scontrol", "--all", "show", "node"), now_s)

    def _book(self, polled: Polled, name: str, command: Sequence[str], now_s: int) -> None:
        answer = self._programs.ask(*command)
        options = replace(self._options, at_s=now_s)
        try:
            report, _ = run_import(source(name), answer, options, self._sink, lambda _: None)
        except Refused as error:
            raise CommandFailed(
                f"{command[0]} printed what is no answer: {error.message}", hint=error.hint
            ) from error
        polled.add(name, report)

    def _stragglers(self, now_s: int) -> list[str]:
        """Return the jobs that are open in the ledger and were in no answer, each once in a while."""
        with reading(self._intake.engine) as reader:
            unheard = set(open_workloads(reader, self._cluster)) - self._sink.workloads
        self._asked = {workload: at_s for workload, at_s in self._asked.items() if at_s > now_s - OVERLAP_S}
        due = sorted(unheard - self._asked.keys())
        self._asked.update(dict.fromkeys(due, now_s))
        return sorted({workload.rpartition("-")[0] for workload in due} - {""})

    def _tell_alive(self, now_s: int) -> None:
        alive = Heartbeat(cluster=self._cluster)
        self._sink.take(
            [make(id=f"collect/{now_s}", source=f"slurm/{self._cluster}", at_s=now_s, data=alive)], []
        )
        self._beat_s = now_s


def cluster_of(programs: Programs) -> str:
    """Return the name of the cluster that Slurm's commands speak of here.

    Raises:
        CommandFailed: When the configuration cannot be had.
        Refused: When there is no Slurm here.
    """
    printed = programs.ask("scontrol", "show", "config").read_text(errors="replace")
    for line in printed.splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "ClusterName" and value.strip():
            return escape_part(value.strip())
    raise CommandFailed("scontrol show config names no cluster", hint="name it: --cluster NAME")


def sacct(*selection: str) -> tuple[str, ...]:
    """Return the call that lists every run of the selected jobs of all users."""
    return ("sacct", "--allusers", "--duplicates", "--json", *selection)


def windows(begin_s: int, end_s: int) -> Iterator[tuple[int, int]]:
    """Yield stretches of a day at most, so that a long absence is not asked for in one breath."""
    while begin_s < end_s:
        edge_s = min(begin_s + DAY_S, end_s)
        yield begin_s, edge_s
        begin_s = edge_s


def batches(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Yield the items, so many at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def local(at_s: int) -> str:
    """Return an instant as Slurm reads it where the zone is UTC."""
    return instant(at_s).strftime("%Y-%m-%dT%H:%M:%S")
