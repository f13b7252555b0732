"""Semantics traps of schedulers in what Slurm shows of its live state; each with its number in the list of traps.

Amounts are GPU-seconds. Files are real where one shows the trap; a record that is made up is in the real format.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.slurmlive import AT, charged, demand, histories, job, squeue
from tests.unit.sources.slurm.live import FIXTURES, codes, events, read, read_text

from gpuledger.events import workload
from gpuledger.events.envelope import Event
from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import KnownRun

CAPTURES = "../slurm/captures"
trap = pytest.mark.trap


HOUR = 8 * 3600


@pytest.mark.parametrize(
    ("changes", "gpu_seconds"),
    [
        pytest.param({}, HOUR, marks=trap(12, "slurm-squeue-json"), id="typed-and-untyped-are-the-same-gpus"),
        pytest.param(
            {"tres_alloc_str": "cpu=8,gres/gpu:rtx8000=1"},
            3600,
            marks=trap(13, "slurm-squeue-json"),
            id="typed-only",
        ),
        pytest.param(
            {"tres_alloc_str": "gres/gpu=8,gres/gpu:a100=4,gres/gpu:h100=4"},
            HOUR,
            marks=trap(14, "slurm-squeue-json"),
            id="mixed-types",
        ),
        pytest.param(
            {"tres_alloc_str": "gres/gpu=8,gres/gpumem=640G,gres/gpuutil=800"},
            HOUR,
            marks=trap(15, "slurm-squeue-json"),
            id="memory-and-utilisation-count-no-gpus",
        ),
        pytest.param(
            {"nodes": "n[1-4]", "tres_per_node": "gres:gpu:8", "tres_alloc_str": "node=4,gres/gpu=32"},
            4 * HOUR,
            marks=trap(16, "slurm-squeue-json"),
            id="a-total-is-not-multiplied",
        ),
        pytest.param(
            {"tres_alloc_str": "billing=99,gres/gpu=8"},
            HOUR,
            marks=trap(18, "slurm-squeue-json"),
            id="billing",
        ),
        pytest.param(
            {"tres_alloc_str": "gres/gpu=7,gres/gpu:1g.10gb=7"},
            3600,
            marks=trap(19, "slurm-squeue-json"),
            id="seven-slices-are-one-device",
        ),
        pytest.param(
            {"job_state": ["NODE_FAIL"]},
            HOUR,
            marks=trap(11, "slurm-squeue-json"),
            id="occupied-until-noticed",
        ),
        pytest.param(
            {"job_state": ["CANCELLED", "COMPLETING"]},
            HOUR,
            marks=[trap(24, "slurm-squeue-json"), trap(28, "slurm-squeue-json")],
            id="a-base-state-and-its-flags",
        ),
        pytest.param(
            {"job_state": ["PREEMPTED"], "preempt_time": AT + 3000},
            HOUR,
            marks=trap(53, "slurm-squeue-json"),
            id="preempted-is-charged-to-the-kill",
        ),
        pytest.param(
            {"job_state": "REVOKED"},
            None,
            marks=trap(33, "slurm-squeue-json"),
            id="a-sibling-that-ran-elsewhere",
        ),
        pytest.param(
            {"job_state": "CANCELLED", "nodes": "", "tres_alloc_str": "", "start_time": AT + 3610},
            None,
            marks=trap(25, "slurm-squeue-json"),
            id="cancelled-while-pending",
        ),
        pytest.param(
            {"end_time": AT},
            None,
            marks=trap(9, "slurm-squeue-json"),
            id="an-end-before-the-start-is-kept-and-free",
        ),
        pytest.param(
            {"name": 'a|b\n{"job_id": 8}, \u00fc', "comment": "line\nbreak"},
            HOUR,
            marks=trap(37, "slurm-squeue-json"),
            id="a-name-may-hold-anything",
        ),
    ],
)
def test_a_job_that_is_over_costs_what_it_held(
    tmp_path: Path, changes: dict[str, Any], gpu_seconds: int | None
) -> None:
    found = events(squeue(tmp_path, job(**changes)))
    assert found
    assert charged(found) == ({} if gpu_seconds is None else {"7": gpu_seconds})


@trap(26, "slurm-squeue-json")
@trap(29, "slurm-squeue-json")
@pytest.mark.parametrize("state", [["RUNNING"], ["RUNNING", "CONFIGURING"], ["SUSPENDED"]])
def test_the_expected_end_of_what_runs_is_none(tmp_path: Path, state: list[str]) -> None:
    runs = job(job_state=state, end_time=AT + 86400)
    (history,) = histories(events(squeue(tmp_path, runs))).values()
    assert [(segment.from_s, segment.to_s) for segment in history.segments] == [(AT + 10, None)]


@trap(26, "slurm-squeue-json")
def test_the_expected_start_of_what_waits_is_none(tmp_path: Path) -> None:
    waits = job(job_state="PENDING", nodes="", tres_alloc_str="", start_time=AT + 10, end_time=AT + 3610)
    found = events(squeue(tmp_path, waits))
    assert charged(found) == {}
    assert demand(found, AT + 86400) == {"7": 8}


@trap(1, "slurm-squeue-json")
@trap(1, "slurmrestd")
@pytest.mark.parametrize("source", ["slurm-squeue-json", "slurmrestd"])
def test_an_array_asks_for_the_tasks_that_its_limit_lets_run(source: str) -> None:
    """Array 2 has four tasks of one GPU and a limit of two: two run, then two wait that may start."""
    running = events(read(source, "lab-squeue-running.json.gz"))
    assert demand(running, AT + 35)["2"] == 2
    assert demand(events(read(source, "lab-squeue-suspended.json.gz")), AT + 41)["2"] == 2


@trap(1, "slurm-squeue-text")
def test_a_pending_array_in_text_asks_for_the_tasks_that_its_limit_lets_run() -> None:
    """Tasks 7 and 8 of array 42271120 wait, one at a time, each for 160 GPUs."""
    assert demand(events(read("slurm-squeue-text", "gcm-squeue.txt")), 1744300000)["42271120"] == 160


@trap(1, "slurm-scontrol-jobs")
def test_a_pending_array_in_a_listing_asks_for_the_tasks_that_its_limit_lets_run(tmp_path: Path) -> None:
    text = (
        "JobId=7 ArrayJobId=7 ArrayTaskId=2-9%3 ArrayTaskThrottle=3 JobName=x\n   JobState=PENDING Reason=Resources\n"
        "   SubmitTime=2026-11-29T14:53:20 EligibleTime=2026-11-29T14:53:20\n"
        "   ReqTRES=node=1,gres/gpu=8\n   AllocTRES=(null)\n"
    )
    assert demand(events(read_text("slurm-scontrol-jobs", tmp_path, text)), AT + 60) == {"7": 24}


@trap(5, "slurm-squeue-json")
@trap(3, "slurm-squeue-json")
def test_a_number_that_came_round_again_is_another_workload(tmp_path: Path) -> None:
    old = job(
        submit_time=AT - 9 * 365 * 86400, start_time=AT - 9 * 365 * 86400, end_time=AT - 9 * 365 * 86400 + 60
    )
    found = events(squeue(tmp_path, old, job(), job(cluster="beta")))
    assert len(histories([event for event in found if event.data.cluster == "alpha"])) == 2
    assert {event.source for event in found} == {"slurm/alpha", "slurm/beta"}


@trap(6, "slurm-squeue-json")
@trap(6, "slurm-scontrol-jobs")
def test_a_suspended_job_holds_its_gpus() -> None:
    """Four GPUs for 13 seconds, 9 of them suspended: 52, not 16."""
    assert charged(events(read("slurm-squeue-json", f"{CAPTURES}/squeue-live.json.gz")))["4"] == 52
    assert charged(events(read("slurm-scontrol-jobs", "lab-scontrol-jobs.txt.gz")))["4"] == 52
    suspended = events(read("slurm-scontrol-jobs", "lab-job-suspended.txt"))
    assert demand(suspended, AT + 60) == {"4": 4}


@trap(20, "slurm-squeue-json")
@trap(20, "slurm-scontrol-jobs")
@pytest.mark.parametrize(
    ("source", "file"),
    [
        ("slurm-squeue-json", f"{CAPTURES}/squeue-live.json.gz"),
        ("slurm-scontrol-jobs", "lab-scontrol-jobs.txt.gz"),
    ],
)
def test_the_components_of_a_heterogeneous_job_are_each_charged_once(source: str, file: str) -> None:
    found = charged(events(read(source, file)))
    assert {name: found[name] for name in found if name.startswith("21")} == {"21+0": 9, "21+1": 18}


@trap(21, "slurm-squeue-json")
@trap(21, "slurm-scontrol-jobs")
@pytest.mark.parametrize(
    ("source", "file"),
    [
        ("slurm-squeue-json", f"{CAPTURES}/squeue-live.json.gz"),
        ("slurm-scontrol-jobs", "lab-scontrol-jobs.txt.gz"),
    ],
)
def test_a_size_is_charged_from_when_it_was_given(source: str, file: str) -> None:
    """Two GPUs for the nine seconds after the change; the five before it stand in accounting alone."""
    assert charged(events(read(source, file)))["27"] == 18


class Ledger:
    """The runs that are booked, as the ledger would tell a source of them."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def of(self, cluster: str, jobs: Collection[str]) -> Mapping[str, Sequence[KnownRun]]:
        del cluster
        ended = {event.id.split("/")[1]: event.at_s for event in self.events if "/ended/" in event.id}
        runs = {
            (event.id.split("/")[0], event.data.workload, event.id.split("/")[1])
            for event in self.events
            if event.id.split("/")[0] in jobs
        }
        found: defaultdict[str, list[KnownRun]] = defaultdict(list)
        for number, name, run in sorted(runs):
            found[number].append(KnownRun(name, int(run), ended.get(run)))
        return found


PICTURES = [
    ("slurm-squeue-json", "lab-squeue-running.json.gz"),
    ("slurm-squeue-json", "lab-squeue-suspended.json.gz"),
    ("slurm-scontrol-jobs", "lab-job-suspended.txt"),
    ("slurm-squeue-json", "lab-squeue-nodedown.json.gz"),
    ("slurm-squeue-text", "lab-squeue-all.psv.gz"),
    ("slurm-scontrol-jobs", "lab-scontrol-jobs.txt.gz"),
    ("slurm-squeue-json", f"{CAPTURES}/squeue-live.json.gz"),
    ("slurm-sacct-json", f"{CAPTURES}/sacct.json.gz"),
]


@trap(2, "slurm-squeue-json")
@trap(4, "slurm-squeue-json")
@trap(22, "slurm-squeue-json")
@trap(31, "slurm-squeue-json")
@pytest.mark.parametrize("pictures", [PICTURES, PICTURES[-1:] + PICTURES[:-1], PICTURES[::-1]])
def test_pictures_in_every_form_and_accounting_tell_of_the_same_runs_once(
    pictures: list[tuple[str, str]],
) -> None:
    """All 28 jobs of a real cluster, to the second, whatever was polled before accounting told of them."""
    expected = json.loads(gzip.decompress((FIXTURES / CAPTURES / "expected.json.gz").read_bytes()))
    ledger = Ledger()
    for source, file in pictures:
        ledger.events += events(read(source, file, cluster="ai2test", known=ledger))
    sums = charged(ledger.events)
    for number, told in expected["jobs"].items():
        assert sums.get(number, 0) == told.get("sacct_gpu_seconds_held", 0), number
    assert set(sums) <= set(expected["jobs"])


@trap(17, "slurmrestd")
@trap(17, "slurm-squeue-json")
@trap(17, "slurm-squeue-text")
def test_gpus_that_are_not_tracked_are_never_none(tmp_path: Path) -> None:
    """What each host holds tells how many; where nothing does, it is reported and not booked as 0."""
    held = events(read("slurm-squeue-json", "../slurm/slurm-web/slurm-job-gpus-multi-nodes.json.gz"))
    assert demand(held, 1762529700) == {"11": 8}
    untold = squeue(tmp_path, job(tres_alloc_str="cpu=8", tres_req_str="cpu=8", tres_per_node="gres/gpu:8"))
    assert codes(untold) == ["gpus-not-tracked"]
    assert not [event for event in events(untold) if isinstance(event.data, workload.Started)]
    assert codes(read("slurm-squeue-text", "lab-squeue-all.psv.gz")) == ["gpus-not-tracked"] * 27


@trap(23, "slurm-squeue-json")
@trap(23, "slurm-nodes")
def test_an_unknown_state_is_kept_and_told(tmp_path: Path) -> None:
    assert codes(squeue(tmp_path, job(job_state="TELEPORTING"))) == ["unknown-state"]
    node = {"name": "n1", "state": "haunted", "gres": "gpu:8", "boot_time": AT}
    assert codes(read_text("slurm-nodes", tmp_path, json.dumps({"nodes": [node]}))) == ["unknown-state"]


@trap(37, "slurm-scontrol-jobs")
@trap(37, "slurm-squeue-text")
def test_text_that_a_name_could_have_written_is_never_believed(tmp_path: Path) -> None:
    block = "JobId=7 JobName=x AllocTRES=gres/gpu=0\n   JobState=RUNNING\n   AllocTRES=gres/gpu=8\n"
    assert codes(read_text("slurm-scontrol-jobs", tmp_path, block)) == ["key-twice"]
    text = "JOBARRAYID|STATE|NAME|SUBMIT_TIME|START_TIME|TRES_ALLOC\n7|RUNNING|a|b|2026-11-29|2026-11-29|gres/gpu=8\n"
    assert codes(read_text("slurm-squeue-text", tmp_path, text)) == ["wrong-columns"]


@trap(38, "slurm-squeue-json")
@trap(38, "slurm-nodes")
def test_a_greeting_before_the_document_is_passed_over_and_told(tmp_path: Path) -> None:
    items = read_text("slurm-squeue-json", tmp_path, "Welcome to [alpha]\n" + json.dumps({"jobs": [job()]}))
    assert codes(items) == ["banner"]
    assert charged(events(items)) == {"7": HOUR}
    with pytest.raises(Refused):
        read_text("slurm-scontrol-jobs", tmp_path, "Welcome\nJobId=7\n")


TEXT = "JOBARRAYID|STATE|SUBMIT_TIME|START_TIME|END_TIME|NODELIST|TRES_ALLOC\n7|COMPLETED|{0}|{0}|{1}|n1|gres/gpu=1\n"


@pytest.mark.parametrize(
    ("start", "end", "zone", "gpu_seconds"),
    [
        pytest.param(
            "2026-03-29T01:30:00",
            "2026-03-29T03:30:00",
            "Europe/Berlin",
            3600,
            marks=trap(40, "slurm-squeue-text"),
        ),
        pytest.param(
            "2026-11-29T01:30:00",
            "2026-11-29T03:30:00",
            "America/New_York",
            7200,
            marks=trap(41, "slurm-squeue-text"),
        ),
        pytest.param(
            "2026-11-29T01:30:00", "2026-11-29T03:30:00", None, 7200, marks=trap(41, "slurm-squeue-text")
        ),
    ],
)
def test_local_times_are_read_in_the_zone_that_is_told(
    tmp_path: Path, start: str, end: str, zone: str | None, gpu_seconds: int
) -> None:
    found = events(read_text("slurm-squeue-text", tmp_path, TEXT.format(start, end), timezone=zone))
    assert charged(found) == {"7": gpu_seconds}
    assert found[0].at_s % 3600 == 1800


@trap(39, "slurm-squeue-text")
def test_a_time_that_came_twice_is_told(tmp_path: Path) -> None:
    text = TEXT.format("2026-10-25T02:30:00", "2026-10-25T03:30:00")
    assert set(codes(read_text("slurm-squeue-text", tmp_path, text, timezone="Europe/Berlin"))) == {
        "ambiguous-time"
    }


@trap(12, "slurm-nodes")
@trap(13, "slurm-nodes")
@trap(14, "slurm-nodes")
@trap(15, "slurm-nodes")
@trap(19, "slurm-nodes")
@pytest.mark.parametrize(
    ("gres", "tres", "gpus"),
    [
        ("gpu:h100:8(S:0-1)", "gres/gpu=8,gres/gpu:h100=8", 8),
        ("gpu:rtx8000:1", "cpu=8", 1),
        ("", "gres/gpu:rtx8000=1", 1),
        ("gpu:a100:4,gpu:h100:4", "gres/gpu=8,gres/gpu:a100=4,gres/gpu:h100=4", 8),
        ("gpu:h100:8,mps:800,shard:64", "gres/gpu=8,gres/gpumem=640G,gres/shard=64", 8),
        ("gpu:1g.10gb:56", "", 8),
    ],
)
def test_a_host_has_the_gpus_that_are_in_it(tmp_path: Path, gres: str, tres: str, gpus: int) -> None:
    node = {"name": "n1", "state": "idle", "gres": gres, "tres": tres, "boot_time": AT}
    (event,) = events(read_text("slurm-nodes", tmp_path, json.dumps({"nodes": [node]})))
    assert event.data.gpus == gpus
