"""``sacct --json`` in the shapes of 22.05 to 26.x, and the captures of a real Slurm to the second."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sources.slurm.told import (
    HOUR,
    T,
    Told,
    accounting,
    by_job,
    codes,
    document,
    expected,
    gpu_seconds,
    histories,
    old_accounting,
    read,
    read_fixture,
    understood,
)

from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

JSON = "slurm-sacct-json"
RUN = Told()


def one(tmp_path: Path, record: dict[str, Any]) -> Translated:
    (item,) = read(JSON, tmp_path, document(record))
    assert isinstance(item, Translated), item
    return item


def test_every_job_of_a_real_slurm_is_charged_to_the_second() -> None:
    items = read_fixture(JSON, "captures/sacct.json.gz")
    seconds = by_job(gpu_seconds(understood(items)))
    assert len(items) == 32
    assert {job: seconds.get(job, 0) for job in expected()} == expected()
    assert sum(seconds.values()) == 5361
    assert codes(items) == ["suspended"]


def test_the_runs_of_a_requeued_job_are_one_workload_and_wait_each_for_itself() -> None:
    found = histories(understood(read_fixture(JSON, "captures/sacct.json.gz")))
    requeued = found["3-1795964029"]
    assert [(s.run, s.from_s, s.to_s) for s in requeued.segments] == [
        ("1795964029", 1795964032, 1795964036),
        ("1795964036", 1795964048, 1795964062),
    ]
    assert [(w.from_s, w.to_s, w.submitted_s) for w in requeued.waits] == [
        (1795964029, 1795964032, 1795964029),
        (1795964042, 1795964048, 1795964029),
    ]
    assert len(found) == 28


def test_all_shapes_of_one_record_tell_the_same(tmp_path: Path) -> None:
    for told in (RUN, Told(array=4700, task=3), Told(leader=4711, offset=0), Told(state="RUNNING", end=None)):
        new = understood([one(tmp_path, accounting(told))])
        assert understood([one(tmp_path, old_accounting(told))]) == new


def test_times_may_be_objects_too(tmp_path: Path) -> None:
    record = accounting(RUN)
    for key in ("submission", "start", "end", "eligible"):
        record["time"][key] = {"set": True, "infinite": False, "number": record["time"][key]}
    assert gpu_seconds(understood([one(tmp_path, record)])) == {f"4711-{T}": 8 * 17_100}


def test_account_and_user_may_stand_in_the_association_alone(tmp_path: Path) -> None:
    record = accounting(RUN)
    record["association"] = {"account": record.pop("account"), "user": record.pop("user"), "cluster": "alpha"}
    del record["cluster"]
    submitted = understood([one(tmp_path, record)])[0].data
    assert (submitted.account, submitted.user, submitted.cluster) == ("alpha/prog-a", "ada", "alpha")


def test_steps_charge_nothing(tmp_path: Path) -> None:
    record = accounting(RUN)
    record["steps"] *= 5
    assert gpu_seconds(understood([one(tmp_path, record)])) == {f"4711-{T}": 8 * 17_100}


@pytest.mark.parametrize("limit", [4294967295, {"set": True, "infinite": True, "number": 0}, None, 0])
def test_no_limit_is_none(tmp_path: Path, limit: object) -> None:
    record = accounting(RUN)
    record["time"]["limit"] = limit
    assert understood([one(tmp_path, record)])[0].data.time_limit_s is None


def test_exit_and_signal_are_read_in_both_shapes(tmp_path: Path) -> None:
    record = accounting(Told(state="FAILED"))
    record["exit_code"] = {
        "return_code": {"set": True, "number": 3},
        "signal": {"id": {"set": True, "number": 9}},
    }
    assert understood([one(tmp_path, record)])[-1].data.exit == "3:9"
    record["exit_code"] = {"return_code": None, "signal": {"signal_id": 15, "name": "Terminated"}}
    assert understood([one(tmp_path, record)])[-1].data.exit == "0:15"
    record["exit_code"] = None
    assert understood([one(tmp_path, record)])[-1].data.exit is None


def test_sluids_link_runs(tmp_path: Path) -> None:
    first = accounting(Told(state="NODE_FAIL")) | {"sluid": "s01", "original_sluid": ""}
    later = T + 90 * 24 * HOUR
    again = accounting(Told(submit=later, start=later, end=later + 60)) | {
        "sluid": "s02",
        "original_sluid": "s01",
    }
    events = understood(read(JSON, tmp_path, document(first, again)))
    assert {e.data.workload for e in events} == {f"4711-{T}"}


def test_the_place_of_a_record_is_its_line(tmp_path: Path) -> None:
    broken = accounting(Told(job=2)) | {"time": None}
    good, fault = read(JSON, tmp_path, document(accounting(RUN), broken))
    assert isinstance(fault, Fault)
    lines = (tmp_path / "records").read_text().splitlines()
    assert (fault.code, json.loads(fault.raw)["job_id"]) == ("bad-shape", 2)
    assert [lines[item.line - 1].strip() for item in (good, fault)] == ["{", "{"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"job_id": "4711"}, "bad-shape"),
        ({"job_id": -4}, "bad-job-id"),
        ({"state": {"current": []}}, "missing-value"),
        ({"state": {"current": ["NAPPING"]}}, "unknown-state"),
        ({"nodes": "n[1-"}, "bad-hosts"),
        ({"user": "a\u0007"}, "bad-name"),
        (
            {"tres": {"allocated": [{"type": "gres", "name": "shard", "count": 4}], "requested": []}},
            "unknown-fraction",
        ),
        (
            {"tres": {"allocated": [{"type": "gres", "name": "gpu", "count": -2}], "requested": []}},
            "out-of-bounds",
        ),
    ],
)
def test_what_cannot_be_read_is_a_dead_letter_with_a_reason(
    tmp_path: Path, change: dict[str, Any], code: str
) -> None:
    assert codes(read(JSON, tmp_path, document(accounting(RUN) | change))) == [code]


@pytest.mark.parametrize(
    "time", [{"submission": 0}, {"submission": T, "start": -5}, {"submission": T, "elapsed": -1}]
)
def test_a_run_without_usable_times_is_a_dead_letter(tmp_path: Path, time: dict[str, int]) -> None:
    assert codes(read(JSON, tmp_path, document(accounting(RUN) | {"time": time}))) != []


def test_a_fraction_that_the_import_names_is_booked(tmp_path: Path) -> None:
    shards = Told(tres="gres/shard=4", asked="gres/shard=4")
    options = ImportOptions(fractions={"shard": 125})
    assert gpu_seconds(understood(read(JSON, tmp_path, document(accounting(shards)), options))) == {
        f"4711-{T}": 17_100 // 2
    }
    (fault,) = read(JSON, tmp_path, document(accounting(Told(state="X"))), options)
    assert isinstance(fault, Fault)
    assert fault.context["fractions"] == {"shard": 125}


@pytest.mark.parametrize("content", [b"", b"hello", b'{"jobs": 3}', b'{"nodes": []}', b'{"jobs": [', b"[1]"])
def test_what_is_no_such_document_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(Refused):
        read(JSON, tmp_path, content)


def test_the_size_is_that_of_the_file(tmp_path: Path) -> None:
    read(JSON, tmp_path, document())
    assert source(JSON).size(tmp_path / "records") == len(document())
