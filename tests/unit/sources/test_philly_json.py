"""Attempts of the Philly trace: the sum of those that are known, and the others told and not charged."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sources.rows import PACIFIC, codes, data, events, one, only, read
from tests.unit.sources.traces import anomalies, faults, fixture, gpu_seconds, ids

from gpuledger.events.workload import Ended, Requeued, Started, Submitted
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.protocol import Fault
from gpuledger.sources.registry import source

SUBMITTED_S = 1_507_338_699  # 2017-10-07 01:11:39 read as UTC


def attempt(start: str | None, end: str | None, *gpus: str, ip: str = "m1") -> dict[str, Any]:
    day = "2017-10-07 "
    times = {"start_time": start and day + start, "end_time": end and day + end}
    return {**times, "detail": [{"ip": ip, "gpus": list(gpus)}] if gpus else []}


def job(*attempts: dict[str, Any], **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": "application_1",
        "attempts": list(attempts),
        "submitted_time": "2017-10-07 01:11:39",
        "user": "ce2f4c",
        **changes,
    }


def log(*jobs: dict[str, Any]) -> bytes:
    return json.dumps(jobs).encode()


def test_the_fixture_has_its_gpu_seconds_by_hand() -> None:
    items = fixture("philly-json", "cluster_job_log.json")
    assert gpu_seconds(items) == {
        "application_1506638472019_10001": 8 * 74 + 4 * 7200,
        "application_1506638472019_10003": 2 * 600,
        "application_1506638472019_10004": 3600,
        "application_1506638472019_10005": 0,
    }
    assert faults(items) == []
    assert [code for _, code in anomalies(items)] == [
        "attempt-without-start",
        "attempt-without-end",
        "no-gpus",
    ]


def test_each_attempt_is_a_run_and_the_job_waits_in_between(tmp_path: Path) -> None:
    item = one(
        "philly-json",
        tmp_path / "p",
        log(
            job(
                attempt("01:12:09", "01:13:23", "gpu0", "gpu1"),
                attempt("01:13:30", "02:13:30", "gpu0", ip="m2"),
            )
        ),
    )
    submitted, first, requeued, second, ended = events(item)
    assert ids(item) == [
        f"application_1/{rest}" for rest in ("submitted", "1/started", "1/ended", "2/started", "2/ended")
    ]
    named = {"cluster": "philly-json", "workload": "application_1"}
    assert submitted.at_s == SUBMITTED_S
    assert submitted.data == Submitted(
        **named, account="philly-json/ee9e8c", user="ce2f4c", gpus_milli=2000, labels={"vc": "ee9e8c"}
    )
    assert first.data == Started(
        **named, run="1", attempt=1, gpus_milli=2000, hosts=["m1"], gpu_uuids=["m1/gpu0", "m1/gpu1"]
    )
    assert requeued.data == Requeued(**named, run="1", reason="requeued")
    assert second.data == Started(
        **named, run="2", attempt=2, gpus_milli=1000, hosts=["m2"], gpu_uuids=["m2/gpu0"]
    )
    assert ended.data == Ended(**named, run="2", reason="pass")


def test_what_an_attempt_does_not_say_stays_unknown(tmp_path: Path) -> None:
    item = one(
        "philly-json",
        tmp_path / "p",
        log(
            job(
                attempt(None, "02:00:00", "gpu0"),
                attempt("02:00:00", None, "gpu0"),
                attempt("03:00:00", "03:00:10", "gpu0"),
            )
        ),
    )
    assert gpu_seconds([item]) == {"application_1": 10}
    assert codes(item) == ["attempt-without-start", "attempt-without-end"]
    assert ids(item)[1] == "application_1/3/started"


def test_a_last_attempt_without_an_end_is_cut_where_the_trace_is(tmp_path: Path) -> None:
    other = job(attempt("01:00:00", "05:00:00", "gpu0"), jobid="application_2")
    item = read("philly-json", tmp_path / "p", log(job(attempt("03:00:00", None, "gpu0")), other))[0]
    assert not isinstance(item, Fault)
    ended = data(item)[-1]
    assert (ended.reason, ended.estimated) == ("trace-end", True)
    assert gpu_seconds([item]) == {"application_1": 7200}


def test_a_job_without_a_time_of_submission_says_nothing_of_a_wait(tmp_path: Path) -> None:
    item = one(
        "philly-json",
        tmp_path / "p",
        log(job(attempt("03:00:00", "03:00:01", "gpu0"), submitted_time=None)),
    )
    started, _ = data(item)
    assert (started.account, started.user) == ("philly-json/ee9e8c", "ce2f4c")


def test_a_job_without_attempts_never_started(tmp_path: Path) -> None:
    submitted, ended = events(one("philly-json", tmp_path / "p", log(job(status="Killed"))))
    assert ended.at_s == submitted.at_s
    assert ended.data == Ended(
        cluster="philly-json", workload="application_1", reason="never-started", estimated=True
    )


def test_an_end_before_its_start_is_charged_0_and_kept(tmp_path: Path) -> None:
    item = one("philly-json", tmp_path / "p", log(job(attempt("03:00:10", "03:00:00", "gpu0"))))
    assert codes(item) == ["end-before-start"]
    assert len(item.events) == 3


def test_a_device_counts_once_and_a_name_on_each_server(tmp_path: Path) -> None:
    detail = [{"ip": "m1", "gpus": ["gpu0", "gpu0"]}, {"ip": "m2", "gpus": ["gpu0"]}]
    item = one("philly-json", tmp_path / "p", log(job({**attempt("03:00:00", "03:00:10"), "detail": detail})))
    assert data(item)[1].gpu_uuids == ["m1/gpu0", "m2/gpu0"]
    assert gpu_seconds([item]) == {"application_1": 20}


def test_times_are_read_in_the_zone_that_is_named_or_that_they_say(tmp_path: Path) -> None:
    content = log(job(attempt("03:00:00", "03:00:10", "gpu0")))
    assert events(one("philly-json", tmp_path / "p", content, PACIFIC))[0].at_s == SUBMITTED_S + 7 * 3600
    said = content.replace(b'01:11:39"', b'01:11:39 PST"')
    assert events(one("philly-json", tmp_path / "p", said, PACIFIC))[0].at_s == SUBMITTED_S + 8 * 3600


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"vc": ""}, "missing-value"),
        ({"jobid": ""}, "missing-value"),
        ({"submitted_time": "yesterday"}, "not-a-time"),
        ({"submitted_time": None}, "missing-value"),
        ({"gpus": 3}, "bad-field"),
        ({"attempts": None}, "bad-field"),
        ({"attempts": [{"start": "2017-10-07 03:00:00"}]}, "bad-field"),
    ],
)
def test_a_job_that_cannot_be_read_is_a_dead_letter_and_the_others_go_on(
    tmp_path: Path, changes: dict[str, Any], code: str
) -> None:
    items = read("philly-json", tmp_path / "p", log(job(**changes), job(jobid="application_2")))
    assert faults(items) == [(1, code)]
    assert len(items) == 2


def test_an_unknown_state_is_told(tmp_path: Path) -> None:
    assert codes(one("philly-json", tmp_path / "p", log(job(status="Vanished")))) == ["unknown-state"]


def test_a_retry_knows_where_the_trace_was_cut(tmp_path: Path) -> None:
    bad = job(attempt("03:00:00", None, "gpu0"), vc="")
    other = job(attempt("01:00:00", "05:00:00", "gpu0"), jobid="application_2")
    fault = only(read("philly-json", tmp_path / "p", log(bad, other)))
    item = source("philly-json").retry(fault.raw.replace(b'"vc": ""', b'"vc": "a"'), fault.context)
    assert gpu_seconds([item]) == {"application_1": 7200}
    with pytest.raises(BadRecord):
        source("philly-json").retry(b"{}", fault.context)


@pytest.mark.parametrize("content", [b"timestamp,duration\n", b"{}", b'[{"a": 1', b'{"jobs": 1}'])
def test_another_kind_of_file_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(Refused):
        read("philly-json", tmp_path / "p", content)
