"""States of virtual clusters: each row holds until the next of its virtual cluster, and nothing is held twice."""

from pathlib import Path

import pytest
from tests.unit.sources.rows import codes, data, events, only, read
from tests.unit.sources.traces import SHANGHAI, Items, facts, faults, gpu_seconds

from gpuledger.events.workload import Ended, Started
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.registry import source

HEAD = (
    b"time,vc,total_job_num,running_job_num,pending_job_num,total_gpu_num,running_gpu_num,pending_gpu_num,"
    b"idle_gpu_num,gpu_utilization\n"
)
MIDNIGHT_S = 1_588_262_400  # 2020-05-01 00:00 in Shanghai


def row(time: str, vc: str, running: int | str, total: int = 64) -> bytes:
    return f"2020-05-01 {time}:00,{vc},1,1,0,{total},{running},0,0,0.5\n".encode()


def states(path: Path, *rows: bytes) -> Items:
    return read("helios", path, HEAD + b"".join(rows), SHANGHAI)


def test_a_row_is_a_run_up_to_the_next_of_its_virtual_cluster(tmp_path: Path) -> None:
    items = states(tmp_path / "h", row("00:00", "a", 8), row("00:10", "b", 1), row("01:00", "a", 0))
    assert gpu_seconds(items) == {
        f"a-{MIDNIGHT_S}": 8 * 3600,
        f"b-{MIDNIGHT_S + 600}": 86_400 - 600,
        f"a-{MIDNIGHT_S + 3600}": 0,
    }


def test_a_run_says_nothing_of_a_wait_and_belongs_to_its_virtual_cluster(tmp_path: Path) -> None:
    first = facts(states(tmp_path / "h", row("00:00", "a", 8), row("01:00", "a", 0)))[0]
    started, ended = events(first)
    named = {"cluster": "helios", "workload": f"a-{MIDNIGHT_S}", "run": "1"}
    assert started.data == Started(
        **named, attempt=1, gpus_milli=8000, hosts=[], account="helios/a", user="-"
    )
    assert ended.data == Ended(**named, reason="changed")


def test_the_last_rows_are_cut_with_the_day_on_which_the_table_ends(tmp_path: Path) -> None:
    (item,) = facts(states(tmp_path / "h", row("23:27", "a", 8)))
    ended = events(item)[-1]
    assert ended.at_s == MIDNIGHT_S + 86_400
    assert (data(item)[-1].reason, data(item)[-1].estimated) == ("trace-end", True)


def test_an_unreadable_row_ends_its_virtual_cluster_where_it_was_last_seen(tmp_path: Path) -> None:
    items = states(
        tmp_path / "h",
        row("00:00", "a", 8),
        row("00:00", "b", 1),
        row("00:30", "b", 2),
        row("00:40", "a", "many"),
        row("01:00", "a", 4),
    )
    assert faults(items) == [(5, "not-a-number")]
    assert gpu_seconds(items) == {
        f"a-{MIDNIGHT_S}": 8 * 1800,  # up to 00:30, the last time before the row that nobody can read
        f"b-{MIDNIGHT_S}": 1800,
        f"b-{MIDNIGHT_S + 1800}": 2 * (86_400 - 1800),
        f"a-{MIDNIGHT_S + 3600}": 4 * (86_400 - 3600),
    }
    assert data(facts(items)[0])[-1].estimated


def test_a_row_of_nobody_knows_whom_ends_all(tmp_path: Path) -> None:
    items = states(tmp_path / "h", row("00:00", "a", 8), row("00:30", "b", 1), b"x,y\n", row("01:00", "b", 3))
    assert faults(items) == [(4, "wrong-columns")]
    assert gpu_seconds(items) == {
        f"a-{MIDNIGHT_S}": 8 * 1800,
        f"b-{MIDNIGHT_S + 1800}": 0,
        f"b-{MIDNIGHT_S + 3600}": 3 * (86_400 - 3600),
    }


def test_a_mended_file_says_the_truth_beside_the_estimate(tmp_path: Path) -> None:
    rows = [row("00:00", "a", 8), row("00:40", "a", "many"), row("01:00", "a", 4)]
    broken = states(tmp_path / "h", *rows)
    rows[1] = row("00:40", "a", 2)
    mended = states(tmp_path / "h", *rows)
    (estimate, truth) = (data(facts(items)[0])[-1] for items in (broken, mended))
    assert (estimate.estimated, truth.estimated) == (True, None)
    assert [event.id for event, _ in facts(broken)[0].events] == [
        event.id for event, _ in facts(mended)[0].events
    ]


@pytest.mark.parametrize("second", [row("00:00", "a", 4), row("00:00", "a", 8).replace(b"05-01", b"04-30")])
def test_a_row_that_is_not_after_the_one_before_is_a_dead_letter(tmp_path: Path, second: bytes) -> None:
    items = states(tmp_path / "h", row("00:00", "a", 8), second)
    assert faults(items) == [(3, "out-of-order")]


def test_a_row_that_says_the_same_again_is_the_same_run(tmp_path: Path) -> None:
    items = states(tmp_path / "h", row("00:00", "a", 8), row("00:00", "a", 8), row("01:00", "a", 0))
    assert faults(items) == []
    assert facts(items)[0].events == facts(items)[1].events


def test_more_running_than_there_are_is_told(tmp_path: Path) -> None:
    (item,) = facts(states(tmp_path / "h", row("00:00", "a", 65)))
    assert codes(item) == ["over-capacity"]


def test_a_row_cannot_be_read_again_without_its_neighbours(tmp_path: Path) -> None:
    fault = only(states(tmp_path / "h", row("00:00", "a", "x")))
    with pytest.raises(BadRecord, match="depends on the rows around it") as caught:
        source("helios").retry(fault.raw.replace(b"x", b"8"), fault.context)
    assert "import the whole file again" in caught.value.hint
