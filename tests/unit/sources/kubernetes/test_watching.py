from pathlib import Path

import pytest
from tests.unit.sources.kubernetes.building import bound, change, pod, read

from gpuledger.kernel.errors import Refused
from gpuledger.sources.kubernetes.watching import CONFIGURATION, Watched
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

POD = pod("x", 1, bound("2026-10-31T20:05:00Z"))


def test_bookmarks_and_configuration_are_passed_over(tmp_path: Path) -> None:
    bookmark = change("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "5"}})
    kinds = [{"kind": kind, "metadata": {"name": "x"}} for kind in sorted(CONFIGURATION)]
    assert read(tmp_path, bookmark, *kinds) == []


def test_an_error_of_the_watch_and_a_kind_that_is_not_read_are_faults(tmp_path: Path) -> None:
    error = change("ERROR", {"kind": "Status", "code": 410, "message": "too old"})
    faults = read(tmp_path, error, {"kind": "Secret", "metadata": {"name": "x"}})
    assert [fault.code for fault in faults if isinstance(fault, Fault)] == ["watch-error", "unknown-kind"]


def test_the_cluster_is_root_and_book(tmp_path: Path) -> None:
    (item,) = read(tmp_path, POD, options=ImportOptions(cluster="west"))
    assert isinstance(item, Translated)
    assert {event.data.cluster for event, _ in item.events} == {"west"}  # type: ignore[attr-defined]
    assert item.events[0][0].source == "kubernetes/west"
    for bad in ("a/b", "~org", "Big"):
        with pytest.raises(Refused, match="--cluster"):
            Watched(ImportOptions(cluster=bad))
    with pytest.raises(Refused, match="Mars"):
        Watched(ImportOptions(timezone="Mars/Base"))


def test_a_fault_is_read_again_into_the_same_account(tmp_path: Path) -> None:
    """Two namespaces that differ only by case cannot be in a cluster, but in a file they are two accounts."""
    upper = pod("y", "1.5", bound("2026-10-31T20:05:00Z"), metadata={"namespace": "Team-A"})
    first, fault = read(tmp_path, POD, upper)
    assert isinstance(first, Translated)
    assert isinstance(fault, Fault)
    mended = fault.raw.replace(b'"1.5"', b'"2"')
    (event, _), _ = source("pods").retry(mended, fault.context).events
    assert event.data.account.startswith("kubernetes/team-a")  # type: ignore[attr-defined]
