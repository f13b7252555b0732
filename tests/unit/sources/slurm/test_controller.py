"""Jobs of the controller: expectations are no facts; what hosts hold counts where nothing is tracked."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.sources.slurm.told import (
    HOUR,
    T,
    Told,
    accounting,
    codes,
    controller,
    document,
    gpu_seconds,
    histories,
    number,
    of,
    read,
    read_fixture,
    understood,
)

from gpuledger.events.envelope import Event

RUNNING = Told(state="RUNNING", end=T + 9 * HOUR)
BARE = {"tres_alloc_str": "cpu=2,node=2", "tres_req_str": "cpu=1"}


def events(tmp_path: Path, record: dict[str, Any]) -> list[Event]:
    return understood(read("slurmrestd", tmp_path, document(record)))


def test_the_end_of_what_runs_is_an_expectation(tmp_path: Path) -> None:
    found = events(tmp_path, controller(RUNNING))
    assert [e.name for e in found] == ["workload.submitted", "workload.started"]


def test_the_start_of_what_waits_is_an_expectation(tmp_path: Path) -> None:
    pending = controller(Told(state="PENDING", start=T + HOUR, end=T + 2 * HOUR, tres=""))
    pending["nodes"] = "h100-[001-004]"
    assert [e.name for e in events(tmp_path, pending)] == ["workload.submitted"]


@pytest.mark.parametrize("state", ["RUNNING", "COMPLETED"])
def test_plain_numbers_and_words_of_older_versions_tell_the_same(tmp_path: Path, state: str) -> None:
    record = controller(Told(state=state))
    old = {key: (value["number"] if isinstance(value, dict) else value) for key, value in record.items()}
    old |= {"job_state": state, "array_task_id": None, "het_job_offset": 0}
    assert events(tmp_path, old) == events(tmp_path, record)


def test_the_controller_and_accounting_tell_the_same_run(tmp_path: Path) -> None:
    exitless = accounting(Told()) | {"exit_code": None}
    assert understood(read("slurmrestd", tmp_path, document(exitless))) == events(
        tmp_path, controller(Told())
    )


def test_what_each_host_holds_counts_where_nothing_is_tracked(tmp_path: Path) -> None:
    held = controller(RUNNING) | BARE | {"gres_detail": ["gpu:h100:4(IDX:0-3)", "gpu:h100:4(IDX:0-3)"]}
    (started,) = of(events(tmp_path, held), "started")
    assert (started.data.gpus_milli, started.data.gpu_model) == (8000, "h100")


def test_hosts_that_do_not_hold_as_much_are_told_apart(tmp_path: Path) -> None:
    record = controller(Told(state="RUNNING", end=T + 9 * HOUR, nodes="n[1-2]", tres="gres/gpu=12"))
    record["gres_detail"] = ["gpu:h100:8(IDX:0-7)", "gpu:h100:4(IDX:0-3)"]
    (started,) = of(events(tmp_path, record), "started")
    assert started.data.host_gpus_milli == {"n1": 8000, "n2": 4000}


@pytest.mark.parametrize(
    "asked",
    [{"tres_per_job": "gres/gpu:8"}, {"tres_per_node": "gres:gpu:4"}, {"tres_per_task": "gres/gpu:h100:1"}],
)
def test_gpus_that_nobody_counts_are_an_alarm(tmp_path: Path, asked: dict[str, str]) -> None:
    items = read("slurmrestd", tmp_path, document(controller(Told()) | BARE | asked))
    assert codes(items) == ["gpus-not-tracked"]
    assert of(understood(items), "started") == []
    assert of(understood(items), "ended") != []


def test_a_request_for_no_gpu_is_none(tmp_path: Path) -> None:
    items = read(
        "slurmrestd", tmp_path, document(controller(Told()) | BARE | {"tres_per_node": "gres/gpu:0"})
    )
    assert codes(items) == []


def test_a_suspension_is_told_with_its_time(tmp_path: Path) -> None:
    paused = controller(Told(state="SUSPENDED", end=None)) | {"suspend_time": number(T + HOUR)}
    assert [(e.name, e.at_s) for e in events(tmp_path, paused)][2:] == [("workload.suspended", T + HOUR)]
    resumed = controller(Told(state="RUNNING", end=None)) | {"suspend_time": number(T + 2 * HOUR)}
    assert [(e.name, e.at_s) for e in events(tmp_path, resumed)][2:] == [("workload.resumed", T + 2 * HOUR)]


def test_a_resized_job_is_charged_for_what_is_told_of_it(tmp_path: Path) -> None:
    resized = controller(Told(start=T + 10, end=T + 100)) | {"resize_time": number(T + 40)}
    assert gpu_seconds(events(tmp_path, resized)) == {f"4711-{T}": 8 * 60}


def test_a_submit_time_is_needed(tmp_path: Path) -> None:
    assert codes(read("slurmrestd", tmp_path, document(controller(Told()) | {"submit_time": number(0)}))) == [
        "missing-value"
    ]


def test_the_captured_queue_and_accounting_agree_on_every_run_that_both_tell() -> None:
    queue = histories(understood(read_fixture("slurmrestd", "captures/squeue-live.json.gz")))
    book = histories(understood(read_fixture("slurm-sacct-json", "captures/sacct.json.gz")))
    told = {
        (s.workload.partition("-")[0], s.run): (s.from_s, s.to_s, s.gpus_milli, s.account)
        for history in book.values()
        for s in history.segments
    }
    seen = {
        (s.workload.partition("-")[0], s.run): (s.from_s, s.to_s, s.gpus_milli, s.account)
        for history in queue.values()
        for s in history.segments
    }
    assert len(seen) == 26
    assert seen == {run: told[run] for run in seen}
