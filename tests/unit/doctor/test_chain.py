"""The chain of a cluster: every broken link is named, with what mends it, and no other is."""

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from gpuledger.doctor.chain import ClusterFacts, Overdue, Source, of_cluster
from gpuledger.doctor.findings import Finding, Level

NOW = dt.datetime(2026, 12, 1, 12, 30, tzinfo=dt.UTC)
MINUTE, HOUR = dt.timedelta(minutes=1), dt.timedelta(hours=1)

WELL = ClusterFacts(
    cluster="alpha",
    rows=1200,
    last_recorded_at=NOW - MINUTE,
    sources=(Source("slurm/alpha", NOW - MINUTE),),
    ticked_at=NOW - HOUR,
    open_runs=3,
    rolled_up_to=NOW - HOUR,
    seen_at=NOW - HOUR,
    leader="host:1",
    decided_at=NOW - MINUTE,
)


def found(**changed: Any) -> list[Finding]:  # noqa: ANN401 - facts by name
    return list(of_cluster(replace(WELL, **changed), NOW))


def test_a_cluster_in_order_has_nothing_but_fine_links() -> None:
    assert {each.level for each in found()} == {Level.FINE}
    assert {each.cluster for each in found()} == {"alpha"}


CLOSE = [Overdue("2026-10", "open", NOW - 24 * HOUR), Overdue("2026-11", "open", NOW)]
SILENT = (Source("slurm/alpha", NOW - 2 * HOUR),)
BROKEN = {
    "a source is dead": ({"sources": SILENT}, "sources", "slurm/alpha has told nothing since", ""),
    "never ticked": ({"ticked_at": None}, "posting", "was ticked never", "gpuledger tick --cluster alpha"),
    "ticked long ago": (
        {"ticked_at": NOW - 3 * HOUR}, "posting", "3 runs are open and the book was ticked last at",
        "gpuledger tick --cluster alpha",
    ),
    "no inventory": (
        {"has_inventory": False}, "inventory", "GPUs of alpha are not known",
        "gpuledger inventory apply inventory.yaml",
    ),
    "no owner": (
        {"unmapped": [("vision-x", 7_200_000)]}, "owners", "vision-x (2.0 GPU-h)",
        "gpuledger mapping unmapped --cluster alpha",
    ),
    "other names": ({"unknown_runs": ["j/1", "j/2", "j/3", "j/4"]}, "telemetry", "j/1, j/2, j/3, and 1 more", ""),
    "never rolled up": ({"rolled_up_to": None}, "roll-up", "nothing of the 1,200 rows", "gpuledger rollup"),
    "a gate holds": (
        {"unseen_rows": 5, "seen_at": NOW - 4 * HOUR}, "roll-up", "5 rows of alpha are not rolled up since",
        "gpuledger rollup",
    ),
    "a leader that does nothing": (
        {"decided_at": NOW - HOUR}, "policy", "host:1 leads alpha, and its newest cycle", "gpuledger policy status",
    ),
    "not closed": (
        {"overdue": CLOSE}, "closes", "2026-10 of alpha is open", "gpuledger close run 2026-10 --cluster alpha",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changed", "link", "said", "command"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_link_is_named_and_no_other(
    changed: dict[str, Any], link: str, said: str, command: str
) -> None:
    (wrong,) = (each for each in found(**changed) if each.level is Level.WRONG)
    assert (wrong.link, wrong.command) == (link, command)
    assert said in wrong.what
    assert wrong.remedy or wrong.command


def test_one_of_several_sources_that_is_silent_is_named_beside_those_that_report() -> None:
    both = (Source("agent/h1", NOW - 3 * HOUR), Source("slurm/alpha", NOW))
    of_sources = [each for each in found(sources=both) if each.link == "sources"]
    assert [each.level for each in of_sources] == [Level.WRONG, Level.FINE]
    assert "agent/h1" in of_sources[0].what
    assert "1 of 2 sources report" in of_sources[1].what


def test_what_was_imported_once_owes_no_liveness() -> None:
    old = {
        "sources": (),
        "open_runs": 0,
        "ticked_at": None,
        "leader": None,
        "decided_at": None,
        "has_samples": False,
    }
    quiet = found(**old, overdue=[Overdue("2017-10", "open", NOW)])
    assert [(each.link, each.level) for each in quiet if each.level is not Level.FINE] == [
        ("sources", Level.NOTE),
        ("closes", Level.NOTE),
    ]


def test_a_live_cluster_without_policy_or_measurement_is_worth_a_note() -> None:
    notes = found(leader=None, decided_at=None, has_samples=False)
    assert [(each.link, each.level) for each in notes if each.level is not Level.FINE] == [
        ("telemetry", Level.NOTE),
        ("policy", Level.NOTE),
    ]
    assert "nobody leads" in next(each.what for each in found(leader=None) if each.link == "policy")


def test_rows_that_came_just_now_are_not_late() -> None:
    assert {each.level for each in found(unseen_rows=5)} == {Level.FINE}


def test_a_book_whose_records_hold_no_gpu_has_nothing_to_mend() -> None:
    held = found(has_work=False, has_inventory=False, rolled_up_to=None)
    assert [(each.link, each.level) for each in held] == [("sources", Level.FINE), ("events", Level.NOTE)]
