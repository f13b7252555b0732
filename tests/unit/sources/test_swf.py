"""Jobs of the Standard Workload Format: what is known is booked, what is not is not guessed."""

from pathlib import Path

import pytest
from tests.unit.sources.rows import codes, data, events, one, only, read
from tests.unit.sources.traces import anomalies, facts, faults, fixture, gpu_seconds, ids

from gpuledger.events.workload import Ended, Requeued, Started, Submitted
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source

HEAD = b"; UnixStartTime: 1000\n; Note: processors are GPUs\n"
FIELDS = {
    "number": "7", "submit": "10", "wait": "5", "run": "60", "allocated": "4", "cpu": "-1", "used": "-1",
    "asked": "4", "limit": "600", "memory": "-1", "status": "1", "user": "3", "group": "2", "program": "-1",
    "queue": "1", "partition": "-1", "after": "-1", "think": "-1",
}  # fmt: skip


def row(**changes: str) -> bytes:
    return " ".join({**FIELDS, **changes}.values()).encode() + b"\n"


def test_the_fixture_has_its_gpu_seconds_by_hand() -> None:
    items = fixture("swf", "gpus.swf")
    assert gpu_seconds(items) == {
        "1-1793487600": 8 * 3600,
        "2-1793487660": 120,
        "4-1793487720": 16 * (200 + 300),
        "6-1793488000": 2 * 60,
    }
    assert faults(items) == [(18, "unknown-value"), (20, "unknown-value")]
    assert anomalies(items) == []


def test_a_job_waits_runs_and_ends(tmp_path: Path) -> None:
    item = one("swf", tmp_path / "s", HEAD + row())
    submitted, started, ended = events(item)
    assert (submitted.at_s, started.at_s, ended.at_s) == (1010, 1015, 1075)
    assert submitted.data == Submitted(
        cluster="swf",
        workload="7-1010",
        account="swf/2",
        user="3",
        gpus_milli=4000,
        time_limit_s=600,
        labels={"queue": "1"},
    )
    assert started.data == Started(
        cluster="swf", workload="7-1010", run="1", attempt=1, gpus_milli=4000, hosts=[]
    )
    assert ended.data == Ended(cluster="swf", workload="7-1010", run="1", reason="completed")
    assert ids(item) == ["7-1010/submitted", "7-1010/1/started", "7-1010/1/ended"]


@pytest.mark.parametrize(
    ("status", "reason", "odd"),
    [("0", "failed", []), ("5", "cancelled", []), ("-1", "unknown", []), ("9", "unknown", ["unknown-state"])],
)
def test_a_status_is_the_reason_of_the_end(tmp_path: Path, status: str, reason: str, odd: list[str]) -> None:
    item = one("swf", tmp_path / "s", HEAD + row(status=status))
    assert (data(item)[-1].reason, codes(item)) == (reason, odd)


def test_a_job_cancelled_in_the_queue_waited_until_then_and_holds_nothing(tmp_path: Path) -> None:
    item = one("swf", tmp_path / "s", HEAD + row(status="5", wait="500", run="-1", allocated="-1"))
    submitted, ended = events(item)
    assert (submitted.data.gpus_milli, ended.at_s) == (4000, 1510)  # type: ignore[attr-defined]
    assert ended.data == Ended(cluster="swf", workload="7-1010", reason="cancelled")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"submit": "-1"}, "submit time"),
        ({"wait": "-1"}, "wait time"),
        ({"run": "-1"}, "run time"),
        ({"allocated": "-1"}, "number of allocated processors"),
    ],
)
def test_what_is_not_known_is_not_guessed(tmp_path: Path, changes: dict[str, str], field: str) -> None:
    fault = only(read("swf", tmp_path / "s", HEAD + row(**changes)))
    assert (fault.code, fault.line) == ("unknown-value", 3)
    assert f"{field}: is not known (-1), and is not guessed" in fault.message


def test_unknown_owners_are_visible(tmp_path: Path) -> None:
    (submitted, *_) = data(one("swf", tmp_path / "s", HEAD + row(user="-1", group="-1", queue="-1")))
    assert (submitted.account, submitted.user, submitted.labels) == ("swf/unknown", "-", None)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"1 2 3\n", "wrong-columns"),
        (row(number="x"), "not-a-number"),
        (row(run="1e3"), "not-a-number"),
        (row(run="-60"), "end-before-start"),
        (row(allocated="2000000"), "out-of-bounds"),
        (row(submit="99999999999"), "time-out-of-range"),
        (row(run="99999999999"), "time-out-of-range"),
        (row(user="\u00e9"), "not-utf8"),
    ],
)
def test_a_line_that_cannot_be_read_is_a_dead_letter(tmp_path: Path, line: bytes, code: str) -> None:
    items = read("swf", tmp_path / "s", HEAD + line + row(number="8"))
    assert faults(items) == [(3, code)]
    assert len(facts(items)) == 1


def test_parts_of_a_job_are_its_runs_and_the_summary_is_not_charged_beside_them(tmp_path: Path) -> None:
    whole = row(run="100", wait="5")
    parts = row(run="40", wait="5", status="2") + row(submit="-1", wait="30", run="60", status="4")
    item = one("swf", tmp_path / "s", HEAD + whole + parts)
    assert [(type(fact).__name__, event.at_s) for event in events(item) for fact in (event.data,)] == [
        ("Submitted", 1010), ("Started", 1015), ("Requeued", 1055), ("Started", 1085), ("Ended", 1145),
    ]  # fmt: skip
    assert data(item)[-1].reason == "failed"
    assert codes(item) == []
    assert gpu_seconds([item]) == {"7-1010": 4 * 100}


def test_parts_that_do_not_add_up_are_booked_and_told(tmp_path: Path) -> None:
    item = one("swf", tmp_path / "s", HEAD + row(run="100") + row(run="40", status="3"))
    assert codes(item) == ["duration-differs"]
    assert gpu_seconds([item]) == {"7-1010": 4 * 40}


def test_a_job_that_is_to_go_on_waits_again(tmp_path: Path) -> None:
    facts_of = data(one("swf", tmp_path / "s", HEAD + row(status="2")))
    assert isinstance(facts_of[-1], Requeued)


def test_a_retry_knows_the_header(tmp_path: Path) -> None:
    names = b"; Queue: 1 batch\n"
    fault = only(read("swf", tmp_path / "s", HEAD + names + row(run="x") + row(number="9")))
    item = source("swf").retry(row().strip(), fault.context)
    assert ids(item)[0] == "7-1010/submitted"
    assert data(item)[0].labels == {"queue": "batch"}
    with pytest.raises(BadRecord, match="Mars/Base"):
        source("swf").retry(row().strip(), {**fault.context, "timezone": "Mars/Base"})


def test_more_gpus_than_the_machine_has_are_told(tmp_path: Path) -> None:
    item = one("swf", tmp_path / "s", HEAD + b"; MaxProcs: 2\n" + row())
    assert codes(item) == ["over-capacity"]


def test_comments_between_jobs_are_no_jobs(tmp_path: Path) -> None:
    items = read("swf", tmp_path / "s", HEAD + row() + b"; a remark\n\n" + row(number="8"))
    assert [item.line for item in items] == [3, 6]


@pytest.mark.parametrize("content", [b"job,gpus\n1,2\n", b"1 2 3\n", b"{}\n"])
def test_another_kind_of_file_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(Refused, match="is no log in the Standard Workload Format"):
        read("swf", tmp_path / "s", content)


def test_a_header_alone_holds_no_job_and_a_log_may_have_none(tmp_path: Path) -> None:
    assert read("swf", tmp_path / "s", HEAD) == []
    item = one("swf", tmp_path / "s", row())
    assert codes(item) == ["processors-as-gpus", "no-start-time"]
    assert events(item)[0].at_s == 10


def test_a_cluster_may_be_named(tmp_path: Path) -> None:
    item = one("swf", tmp_path / "s", HEAD + row(), ImportOptions(cluster="west"))
    assert (data(item)[0].cluster, data(item)[0].account) == ("west", "west/2")
