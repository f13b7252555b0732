"""Schedulers' traps that records of Slurm jobs show, each in the real format and with its right value.

Amounts are GPU-seconds. A case goes through the source to events, and from these to what is charged; a case that
several formats can show is told in each of them.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.sources.slurm.told import (
    FORMATS,
    HOUR,
    T,
    Told,
    accounting,
    by_job,
    codes,
    completion,
    controller,
    document,
    gpu_seconds,
    histories,
    listing,
    of,
    read,
    read_fixture,
    row,
    text_time,
    traps,
    understood,
    written,
)

from gpuledger.events.envelope import Event
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.charges import CHARGE, PHYSICAL, desired
from gpuledger.sources.protocol import Fault, Translated
from gpuledger.sources.registry import source

JSON, TEXT, JOBCOMP, REST = "slurm-sacct-json", "slurm-sacct-text", "slurm-jobcomp", "slurmrestd"
RUN = Told()
W = f"4711-{T}"
CHARGED = {W: 8 * 17_100}
ATTEMPTS = (3889, 4473, 6122, 2153)


def told_in(tmp_path: Path, name: str, *runs: Told) -> list[Event]:
    return understood(read(name, tmp_path, written(name, *runs)))


def requeues() -> list[Told]:
    """Four runs of one job, each submitted when the one before it ended."""
    found, submit = [], T
    for n, seconds in enumerate(ATTEMPTS):
        state = "COMPLETED" if n == len(ATTEMPTS) - 1 else "REQUEUED"
        start = submit + 120
        found.append(Told(state=state, submit=submit, start=start, end=start + seconds, tres="gres/gpu=1"))
        submit = start + seconds
    return found


def by_day(events: Iterable[Event], zone: str) -> dict[str, int]:
    days: dict[str, int] = {}
    for history in histories(events).values():
        for key, gpu_ms in desired(history, Calendar(zone)).items():
            if (key.commodity, key.code) == (PHYSICAL, CHARGE):
                days[key.day.isoformat()] = days.get(key.day.isoformat(), 0) + gpu_ms // 1000
    return days


@traps(1, JSON, TEXT, REST)
@pytest.mark.parametrize("name", [JSON, TEXT, REST])
def test_1_an_array_is_charged_by_task_and_waits_for_as_many_as_its_limit_lets_run(
    tmp_path: Path, name: str
) -> None:
    tasks = [Told(job=14 + n, array=2, task=n, tres="gres/gpu=1", end=T + 1800 + 8) for n in (0, 1)]
    waiting = Told(
        job=2, array=2, tasks="2-9%4", state="PENDING", start=None, end=None, tres=None, asked="gres/gpu=1"
    )
    events = told_in(tmp_path, name, *tasks, waiting)
    assert by_job(gpu_seconds(events)) == {"2_0": 8, "2_1": 8}
    still = [w for h in histories(events).values() for w in h.waits if w.to_s is None]
    assert sum(wait.gpus_milli for wait in still) == 4 * 1000


@traps(2, JSON, TEXT, JOBCOMP)
@pytest.mark.parametrize("name", [JSON, TEXT, JOBCOMP])
def test_2_a_requeued_job_is_the_sum_of_its_runs(tmp_path: Path, name: str) -> None:
    for runs in (requeues(), requeues()[::-1]):
        charged = gpu_seconds(told_in(tmp_path, name, *runs))
        assert list(charged.values()) == [16_637]


@traps(3, *FORMATS)
@pytest.mark.parametrize("name", FORMATS)
def test_3_a_run_is_a_cluster_a_number_and_a_submission(tmp_path: Path, name: str) -> None:
    others = (RUN, RUN, replace(RUN, cluster="beta"), replace(RUN, job=4712))
    assert len(told_in(tmp_path, name, RUN)) == 3
    events = told_in(tmp_path, name, *others)
    assert len({(e.source, e.id) for e in events}) == 9
    assert sum(gpu_seconds(e for e in events if e.data.cluster == "alpha").values()) == 2 * 8 * 17_100


@traps(3, JSON)
def test_3_a_sluid_links_the_runs_of_a_job(tmp_path: Path) -> None:
    later = replace(RUN, submit=T + 99 * HOUR, start=T + 99 * HOUR, end=T + 100 * HOUR)
    records = (accounting(RUN) | {"sluid": "s1"}, accounting(later) | {"sluid": "s2", "original_sluid": "s1"})
    assert set(gpu_seconds(understood(read(JSON, tmp_path, document(*records))))) == {W}


@traps(4, JSON, TEXT, JOBCOMP)
@pytest.mark.parametrize("name", [JSON, TEXT, JOBCOMP])
def test_4_a_user_waits_from_the_first_submission_and_a_run_from_its_own(tmp_path: Path, name: str) -> None:
    (history,) = histories(told_in(tmp_path, name, *requeues())).values()
    assert {wait.submitted_s for wait in history.waits} == {T}
    assert [(wait.to_s or 0) - wait.from_s for wait in history.waits] == [120] * 4
    assert [s.run for s in history.segments] == [str(run.submit) for run in requeues()]


@traps(5, *FORMATS)
@pytest.mark.parametrize("name", FORMATS)
def test_5_a_number_that_comes_round_again_is_another_workload(tmp_path: Path, name: str) -> None:
    old = T - 3300 * 24 * HOUR
    before = Told(submit=old, start=old, end=old + 60, account="prog-z")
    charged = gpu_seconds(told_in(tmp_path, name, before, RUN))
    assert charged == {f"4711-{old}": 8 * 60, **CHARGED}


@traps(6, JSON, TEXT)
@pytest.mark.parametrize("name", [JSON, TEXT])
def test_6_suspended_gpus_stay_held_and_are_flagged(tmp_path: Path, name: str) -> None:
    run = Told(start=T, end=T + 2 * HOUR, suspended=1800)
    items = read(name, tmp_path, written(name, run))
    assert gpu_seconds(understood(items)) == {W: 16 * HOUR}
    assert codes(items) == ["suspended"]


@traps(6, JSON, TEXT)
def test_6_the_suspended_job_of_a_real_slurm_held_52_gpu_seconds() -> None:
    for name, file in ((JSON, "sacct.json.gz"), (TEXT, "sacct-all-fields.psv.gz")):
        assert by_job(gpu_seconds(understood(read_fixture(name, f"captures/{file}"))))["4"] == 52


@traps(6, REST)
def test_6_a_suspension_whose_time_is_told_is_a_fact(tmp_path: Path) -> None:
    paused = controller(Told(state="SUSPENDED", end=None)) | {"suspend_time": T + HOUR}
    assert [e.at_s for e in of(understood(read(REST, tmp_path, document(paused))), "suspended")] == [T + HOUR]


@traps(7, JSON, TEXT, JOBCOMP)
@pytest.mark.parametrize("name", [JSON, TEXT, JOBCOMP])
def test_7_a_month_ends_where_the_organisation_is(tmp_path: Path, name: str) -> None:
    events = told_in(tmp_path, name, RUN)
    assert by_day(events, "UTC") == {"2026-10-31": 43_200, "2026-11-01": 93_600}
    assert by_day(events, "America/Los_Angeles") == {"2026-10-31": 136_800}


@traps(11, JSON, TEXT, JOBCOMP)
@pytest.mark.parametrize("name", [JSON, TEXT, JOBCOMP])
def test_11_a_failed_host_is_occupied_until_it_was_noticed(tmp_path: Path, name: str) -> None:
    events = told_in(tmp_path, name, replace(RUN, state="NODE_FAIL"))
    assert gpu_seconds(events) == CHARGED
    assert events[-1].data.reason == "NODE_FAIL"


@traps(20, *FORMATS)
@pytest.mark.parametrize("name", FORMATS)
def test_20_components_are_summed_once_and_the_leader_is_one_of_them(tmp_path: Path, name: str) -> None:
    parts = [Told(job=21 + n, leader=21, offset=n, tres=f"gres/gpu={n + 1}", end=T + 1809) for n in (0, 1)]
    assert by_job(gpu_seconds(told_in(tmp_path, name, *parts))) == {"21+0": 9, "21+1": 18}


@traps(21, JSON, TEXT)
def test_21_each_size_of_a_resized_job_is_an_interval_of_its_own() -> None:
    for name, file in ((JSON, "sacct.json.gz"), (TEXT, "sacct-all-fields.psv.gz")):
        found = histories(understood(read_fixture(name, f"captures/{file}")))["27-1795964232"]
        assert [(s.gpus_milli, (s.to_s or 0) - s.from_s) for s in found.segments] == [(4000, 5), (2000, 9)]


@traps(21, JOBCOMP)
def test_21_a_document_of_the_last_size_is_charged_from_the_resize_on(tmp_path: Path) -> None:
    last = completion(replace(RUN, tres="gres/gpu=2")) | {"@start": text_time(T + 2400)}
    assert gpu_seconds(understood(read(JOBCOMP, tmp_path, json.dumps(last).encode()))) == {W: 2 * 16_500}


@traps(22, JSON, TEXT, JOBCOMP)
@pytest.mark.parametrize("name", [JSON, TEXT, JOBCOMP])
@pytest.mark.parametrize("state", ["REQUEUED", "RESIZING", "PREEMPTED"])
def test_22_a_run_with_a_name_that_is_not_final_counts(tmp_path: Path, name: str, state: str) -> None:
    assert gpu_seconds(told_in(tmp_path, name, replace(RUN, state=state))) == CHARGED


@traps(23, *FORMATS)
@pytest.mark.parametrize("name", FORMATS)
def test_23_an_unknown_state_is_quarantined_each_time_and_nothing_after_it(tmp_path: Path, name: str) -> None:
    odd = [Told(job=n, state="HIBERNATING") for n in (1, 2)]
    items = read(name, tmp_path, written(name, odd[0], RUN, odd[1]))
    assert codes(items) == ["unknown-state", "unknown-state"]
    assert gpu_seconds(understood(i for i in items if isinstance(i, Translated))) == CHARGED
    fault = next(i for i in items if isinstance(i, Fault))
    mended = source(name).retry(fault.raw.replace(b"HIBERNATING", b"COMPLETED"), fault.context)
    assert list(gpu_seconds(understood([mended])).values()) == [8 * 17_100]


@traps(24, TEXT, JSON, REST)
def test_24_a_suffix_or_a_list_of_flags_is_a_base_state_with_flags(tmp_path: Path) -> None:
    text = understood(read(TEXT, tmp_path, listing(row(RUN) | {"State": "CANCELLED by 1001"})))
    json_ = understood(read(JSON, tmp_path, document(accounting(replace(RUN, state="CANCELLED")))))
    assert text == json_
    completing = controller(RUN) | {"job_state": ["CANCELLED", "COMPLETING"]}
    (ended,) = of(understood(read(REST, tmp_path, document(completing))), "ended")
    assert ended.data.reason == "CANCELLED"


@traps(25, *FORMATS)
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("start", [None, T + 99 * HOUR])
def test_25_what_was_cancelled_while_it_waited_is_0(tmp_path: Path, name: str, start: int | None) -> None:
    cancelled = Told(state="CANCELLED", start=start, end=T + 60, tres="gres/gpu=8", elapsed=0)
    events = told_in(tmp_path, name, cancelled)
    assert gpu_seconds(events) == {}
    assert [w.to_s for h in histories(events).values() for w in h.waits] == [T + 60]


@traps(25, JSON)
@pytest.mark.parametrize("sentinel", [4294967294, 4294967295, {"set": False, "infinite": False, "number": 0}])
def test_25_a_sentinel_is_no_start(tmp_path: Path, sentinel: object) -> None:
    record = accounting(Told(state="CANCELLED", end=T + 60, tres=None, elapsed=0))
    record["time"]["start"] = sentinel
    assert gpu_seconds(understood(read(JSON, tmp_path, document(record)))) == {}


@traps(26, *FORMATS)
@pytest.mark.parametrize("name", FORMATS)
def test_26_what_runs_is_an_open_interval_and_never_1970(tmp_path: Path, name: str) -> None:
    (history,) = histories(told_in(tmp_path, name, Told(state="RUNNING", end=None, elapsed=600))).values()
    assert [(s.from_s, s.to_s) for s in history.segments] == [(T + 1800, None)]


@traps(27, JSON, TEXT)
@pytest.mark.parametrize("name", [JSON, TEXT])
def test_27_a_lost_end_stays_open_and_a_repaired_one_is_an_estimate(tmp_path: Path, name: str) -> None:
    lost = read(name, tmp_path, written(name, replace(RUN, end=None)))
    assert codes(lost) == ["end-lost"]
    assert [s.to_s for h in histories(understood(lost)).values() for s in h.segments] == [None]
    repaired = read(name, tmp_path, written(name, replace(RUN, end=RUN.start)))
    assert codes(repaired) == ["zero-length"]
    assert [e.data.estimated for e in of(understood(repaired), "ended")] == [True]


@traps(28, REST)
def test_28_gpus_held_by_an_epilog_are_not_charged(tmp_path: Path) -> None:
    completing = controller(RUN) | {"job_state": ["COMPLETED", "COMPLETING"]}
    assert gpu_seconds(understood(read(REST, tmp_path, document(completing)))) == CHARGED


@traps(29, REST)
def test_29_a_run_is_charged_from_its_allocation_also_while_hosts_boot(tmp_path: Path) -> None:
    booting = controller(replace(RUN, state="RUNNING", end=None)) | {"job_state": ["RUNNING", "CONFIGURING"]}
    (started,) = of(understood(read(REST, tmp_path, document(booting))), "started")
    assert started.at_s == RUN.start


@traps(31, JOBCOMP)
def test_31_an_end_that_is_told_before_its_start_is_the_same_run(tmp_path: Path) -> None:
    start = replace(RUN, state="RUNNING", end=None)
    assert gpu_seconds(told_in(tmp_path, JOBCOMP, RUN, start)) == CHARGED
    assert gpu_seconds(told_in(tmp_path, JOBCOMP, start, RUN)) == CHARGED


@traps(33, JSON, TEXT, REST)
@pytest.mark.parametrize("name", [JSON, TEXT, REST])
def test_33_a_revoked_sibling_is_0(tmp_path: Path, name: str) -> None:
    events = told_in(tmp_path, name, replace(RUN, state="REVOKED"))
    assert gpu_seconds(events) == {}
    assert [w for h in histories(events).values() for w in h.waits if w.to_s is None] == []


@traps(53, JSON, TEXT, JOBCOMP)
@pytest.mark.parametrize("name", [JSON, TEXT, JOBCOMP])
def test_53_preempted_work_is_charged_to_the_kill(tmp_path: Path, name: str) -> None:
    events = told_in(tmp_path, name, replace(RUN, state="PREEMPTED"))
    assert gpu_seconds(events) == CHARGED
    assert [e.at_s for e in of(events, "preempted")] == [RUN.end]
