"""Submissions of a simulation in the Standard Workload Format."""

import io
from dataclasses import replace
from pathlib import Path

from tests.simulating import T0, Scripted, at_once, job, scenario

from gpuledger.simulator.demand.traces import TraceDemand, read_trace
from gpuledger.simulator.engine import simulate
from gpuledger.simulator.facts import Submitted
from gpuledger.simulator.scenario import AccountSpec
from gpuledger.simulator.swf import undisturbed_s, write_swf
from gpuledger.sources.protocol import ImportOptions

JOBS = [
    job("a", 2, 100, startup_s=10, idle_s=5, account="org/b", user="ben"),
    job("d", 0.5, 40, at_s=7, kind="debug", time_limit_s=30),
    job("w", 64, 500, at_s=9, time_limit_s=3600),
]
ACCOUNTS = (AccountSpec(account="org/a", share=1), AccountSpec(account="org/b", share=1))


def written(**more: object) -> str:
    made = replace(scenario(JOBS, hosts=(8, 8), accounts=ACCOUNTS), **more)  # type: ignore[arg-type]
    out = io.StringIO()
    assert write_swf(simulate(made, Scripted(otherwise=at_once)), made, out) == 3
    return out.getvalue()


def test_each_submission_is_a_line_whatever_became_of_it() -> None:
    lines = [line for line in written().splitlines() if not line.startswith(";")]
    assert lines == [
        "1 0 0 115 2 -1 -1 2 -1 -1 1 1 2 -1 3 -1 -1 -1",
        "2 7 0 30 1 -1 -1 1 30 -1 1 2 1 -1 1 -1 -1 -1",
        "3 9 0 500 64 -1 -1 64 3600 -1 1 2 1 -1 4 -1 -1 -1",
    ]


def test_the_header_says_what_it_is() -> None:
    header = [line for line in written(name="für alle").splitlines() if line.startswith(";")]
    assert f"; UnixStartTime: {T0}" in header
    assert "; MaxProcs: 16" in header
    assert "; Note: processors are GPUs" in header
    assert "; Note: group 2 is org/b" in header
    assert "; Queue: 1 debug" in header
    assert all(line.isascii() for line in header)


def test_it_is_read_back_as_the_same_demand(tmp_path: Path) -> None:
    path = tmp_path / "submitted.swf"
    path.write_text(written())
    trace = read_trace("swf", [path], ImportOptions())
    assert trace.notes == []
    assert [
        (read.submitted_s, read.work_s, read.time_limit_s, read.gpus_milli)
        for read in TraceDemand(trace, T0).first()
    ] == [
        (T0, 115, None, 2000),
        (T0 + 7, 30, 30, 1000),  # half a GPU is one here
        (T0 + 9, 500, 3600, 64_000),
    ]


def test_only_submissions_are_written() -> None:
    made = scenario(JOBS[:1])
    out = io.StringIO()
    facts = list(simulate(made, Scripted(otherwise=at_once)))
    assert len(facts) > 1
    assert write_swf(facts, made, out) == sum(isinstance(fact, Submitted) for fact in facts)


def test_a_job_takes_as_long_as_its_time_limit_lets_it() -> None:
    assert undisturbed_s(job("j", 1, 100, startup_s=20, idle_s=30)) == 150
    assert undisturbed_s(job("j", 1, 100, startup_s=20, idle_s=30, time_limit_s=130)) == 130
