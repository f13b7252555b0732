"""How fast each source of traces reads, against a bare read of the same bytes; see ``tests.bench.parsing``.

csv splits a row in half a microsecond to one, in C, and so does str.split a line of the Standard Workload Format.
Tables of jobs are read by column, which costs half of that before anything is checked; what each row needs by itself -
its times, its name, its job, its place in the file - takes one and a half more. So a table is understood at a sixth to
two fifths of csv's speed, and at up to half of csv.DictReader's, which gives its rows by name; its three events, each
encoded and digested, take two to four times as long again. What is gated is what was measured, less what a busy
machine takes away.
"""

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from tests.bench.parsing import speed, turns
from tests.property.sources.seeds import SEEDS, Seed

from gpuledger.events.envelope import Event, make
from gpuledger.events.workload import Resumed
from gpuledger.ingest.collector import relax_collector
from gpuledger.sources import beaker, clustercockpit
from gpuledger.sources.attempts import PlacedJob
from gpuledger.sources.jobs import Job
from gpuledger.sources.pieces import Facts
from gpuledger.sources.protocol import Translated
from gpuledger.sources.registry import source

pytestmark = pytest.mark.bench

RECORDS = {"short": 1_000, "full": 20_000}

LIMITS = {
    # reader: least ratio of understanding, of the whole
    "csv": (0.05, 0.025),
    "split": (0.06, 0.03),
    "json": (0.09, 0.045),
}
OWN_LIMITS = {
    "acme-trace_seren": (0.17, 0.06),
    "acme-trace_kalos": (0.16, 0.06),
    "beaker-jobs": (0.22, 0.1),
    "clustercockpit-alex": (0.18, 0.05),
    "dlrm-disaggregated_DLRM_trace": (0.14, 0.05),
    "events-events": (0.22, 0.22),
    "helios-Earth_gpu_number": (0.011, 0.011),
    "helios-cluster_log": (0.19, 0.05),
    "openb-openb_pod_list_default": (0.21, 0.045),
    "pai-pai_instance_table": (0.11, 0.045),
    "philly-json-cluster_gpu_util": (0.025, 0.025),
    "philly-philly": (0.09, 0.025),
}
"""Tables of jobs are read by column, and Beaker's jobs in one go. An event is its own fact. A row of
``Earth_gpu_number`` and of ``cluster_gpu_util`` is not one job: it is a day of each of two dozen virtual clusters, and
eight measured devices."""

OWN = frozenset(
    "acme beaker clustercockpit dlrm events helios openb pai philly philly-json swf".split()  # noqa: SIM905 - a list of words
)
CASES = [pytest.param(seed, id=str(seed)) for seed in SEEDS if seed.source in OWN]

NOTHING = make(id="1", source="bench", at_s=0, data=Resumed(cluster="c", workload="w", run="1"))
"""Stands for the facts of a job where only understanding it is measured."""


def bare_read(seed: Seed, content: bytes) -> tuple[str, Callable[[], object]]:
    """Return the kind of the bare reader of a format, and a read with it."""
    if seed.entry.records == "members":
        return "json", lambda: msgspec.json.decode(content)
    if content.lstrip().startswith(b"{"):
        return "json", lambda: [msgspec.json.decode(line) for line in content.splitlines()]
    if content.startswith(b";"):
        return "split", lambda: [line.split() for line in content.decode().splitlines()]
    return "csv", lambda: list(csv.reader(io.StringIO(content.decode())))


def by_name(kind: str, count: int, content: bytes, understand: Callable[[], object]) -> str:
    """Say how understanding a table compares with reading its rows by the names of their columns; not gated."""
    if kind != "csv":
        return ""

    def read() -> None:
        for _ in csv.DictReader(io.StringIO(content.decode())):
            pass

    return f"; ratio to csv.DictReader {turns(count, read, understand)[0]:.2f}"


@pytest.fixture
def without_facts(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], Callable[[], object]]:
    """Run a work of which only the making of facts is left out; of what holds no jobs nothing is."""

    def job_facts(self: Job) -> list[tuple[Event, bytes]]:
        del self
        return [NOTHING]

    def placed_facts(self: PlacedJob) -> Facts:
        return (NOTHING,), self.oddities

    def no_samples(*_: object) -> Sequence[tuple[Event, bytes]]:
        return ()

    def not_preempted(_: Event) -> tuple[Event, bytes]:
        return NOTHING

    def bound(work: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            with monkeypatch.context() as patch:
                patch.setattr(Job, "facts", job_facts)
                patch.setattr(PlacedJob, "facts", placed_facts)
                patch.setattr(clustercockpit, "_samples", no_samples)
                patch.setattr(beaker, "_preempted", not_preempted)
                return work()

        return run

    return bound


@pytest.mark.parametrize("seed", CASES)
def test_a_source_reads_at_its_share_of_the_speed_of_a_bare_read(
    tmp_path: Path,
    seed: Seed,
    test_form: str,
    without_facts: Callable[[Callable[[], object]], Callable[[], object]],
) -> None:
    relax_collector()
    count = RECORDS[test_form]
    records = seed.records(count)
    content = seed.put_together([records[n % len(records)] for n in range(count)])
    path = seed.write(tmp_path, content)

    def read() -> int:
        items = source(seed.source).read(path, seed.options)
        return sum(isinstance(item, Translated) for item in items)

    assert read()
    kind, bare = bare_read(seed, content)
    found = speed(count, bare, without_facts(read), read)
    print(f"\n{seed} ({kind}): {found}{by_name(kind, count, content, without_facts(read))}")
    understood_min, whole_min = OWN_LIMITS.get(str(seed), LIMITS[kind])
    assert found.understood >= understood_min
    assert found.whole >= whole_min
