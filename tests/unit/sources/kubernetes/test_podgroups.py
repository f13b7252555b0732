from pathlib import Path

from tests.unit.sources.kubernetes.building import change, events, group, odd, read, told

from gpuledger.events.workload import Ended, Submitted

BEGAN = 1_793_476_800


def test_a_group_is_submitted_once_it_is_known_what_it_asks_for(tmp_path: Path) -> None:
    items = read(
        tmp_path, group("pg", None), group("pg", {"cpu": "4"}), group("pg", {"nvidia.com/gpu": "2500m"})
    )
    (event,) = events(items)
    assert isinstance(event.data, Submitted)
    assert (event.source, event.at_s) == ("kai/kubernetes", BEGAN)
    assert (event.data.workload, event.data.account, event.data.gpus_milli) == (
        "team-a/pg",
        "kubernetes/team-a",
        2500,
    )
    assert event.data.labels == {"namespace": "team-a", "queue": "team-a", "priority_class": "train"}


def test_a_group_without_a_queue_is_its_namespaces(tmp_path: Path) -> None:
    (event,) = events(read(tmp_path, group("pg", {"gpu": 1}, queue="")))
    assert isinstance(event.data, Submitted)
    assert (event.data.account, event.data.labels) == (
        "kubernetes/team-a",
        {"namespace": "team-a", "priority_class": "train"},
    )


def test_a_group_is_over_when_it_is_deleted(tmp_path: Path) -> None:
    asking = group("pg", {"nvidia.com/gpu": "1"})
    items = read(tmp_path, asking, change("DELETED", asking, "2026-10-31T20:09:00Z"))
    assert told(events(items)) == [("workload.submitted", BEGAN), ("workload.ended", BEGAN + 540)]
    last = events(items)[-1].data
    assert isinstance(last, Ended)
    assert (last.run, last.reason) == (None, "deleted")
    assert odd(read(tmp_path, change("DELETED", asking))) == ["deleted-at-unknown-time"]
    assert read(tmp_path, change("DELETED", group("pg", None))) == []
