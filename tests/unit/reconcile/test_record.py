"""A record is read as an import would read it, and covers what it can be expected to hold."""

from pathlib import Path

import pytest
from tests.accounting import CLUSTER, document, job

from gpuledger.kernel.errors import Refused
from gpuledger.reconcile.comparison import Bounds
from gpuledger.reconcile.record import Record, read_record
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source

SOURCES = [source("slurm-sacct-text"), source("slurm-sacct-json")]
TEXT = """\
JobID|JobIDRaw|Cluster|State|Submit|Start|End|ElapsedRaw|AllocTRES|ReqTRES|Account|User
1|1|alpha|COMPLETED|2026-11-29T10:00:00|2026-11-29T10:00:00|2026-11-29T10:05:00|300|cpu=1,gres/gpu=2|cpu=1,gres/gpu=2|vision|ada
"""


def read(path: Path, text: str) -> Record:
    path.write_text(text)
    return read_record(path, SOURCES, ImportOptions())


def test_both_forms_of_sacct_say_the_same(tmp_path: Path) -> None:
    at_s = 1_795_946_400

    text = read(tmp_path / "x", TEXT)
    json = read(tmp_path / "x", document([job(1, at_s, at_s + 300)]))

    ((key, events),) = json.facts.items()
    assert key == (CLUSTER, f"1-{at_s}")
    assert {event.name for event in events} == {"workload.submitted", "workload.started", "workload.ended"}
    assert {(e.at_s, e.name) for e in events} == {(e.at_s, e.name) for e in text.facts[key]}
    assert json.clusters == text.clusters == [CLUSTER]


def test_what_cannot_be_read_is_kept_beside_the_rest(tmp_path: Path) -> None:
    record = read(tmp_path / "x", document([job(1, 100, 200), job(2, 100, 200, state="FROZEN")]))

    assert len(record.facts) == 1
    assert [fault.code for fault in record.faults] == ["unknown-state"]


def test_a_file_of_neither_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        read(tmp_path / "x", "hello\n")


def test_it_covers_what_ended_after_its_first_end_and_began_before_its_last_fact(tmp_path: Path) -> None:
    record = read(tmp_path / "x", document([job(1, 100, 200), job(2, 50, 300), job(3, 250)]))

    assert record.bounds(CLUSTER, 60) == Bounds(from_s=200, to_s=301, taken_s=301, grace_s=60)
    assert record.bounds(CLUSTER, 60, from_s=120).from_s == 120


def test_without_an_end_it_covers_what_runs(tmp_path: Path) -> None:
    record = read(tmp_path / "x", document([job(3, 250)]))

    assert record.bounds(CLUSTER, 60) == Bounds(from_s=251, to_s=251, taken_s=251, grace_s=60)
