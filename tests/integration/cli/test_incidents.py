"""``incident list``, ``credit`` and ``reverse``: shown first, credited once, reversed for good."""

from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger

from gpuledger.events.envelope import make
from gpuledger.events.workload import Ended

HEADER = (
    "job_id,cluster,subcluster,user,project,start_time,duration,walltime,state,num_acc,nodes,accelerators,"
    "acc_utilization_avg"
)
TEN = 1_772_359_200
"""2026-03-01T10:00:00Z."""
INCIDENT = "node1@2026-03-01T10:00:00Z"


def row(job: int, end_s: int, state: str, node: str = "node1") -> str:
    """A job of two hours on one GPU, as ClusterCockpit exports it."""
    return f"{job},alpha,h100,ada,vision,{end_s - 7200},7200,86400,{state},1,{node},{node}/0{job}:00.0,50"


@pytest.fixture
def imported(ledger: Ledger, tmp_path: Path) -> Ledger:
    """A trace in which a node fails at ten o'clock under two jobs, while others end as they should."""
    jobs = [
        row(1, TEN, "node_fail"),
        row(2, TEN + 60, "failed"),
        row(3, TEN, "completed"),
        row(4, TEN + 60, "failed", "node2"),
        row(5, TEN + 86_400, "node_fail", "node3"),
    ]
    trace = tmp_path / "jobs.csv"
    trace.write_text("\n".join([HEADER, *jobs]) + "\n")
    ledger.done("import", "clustercockpit", trace)
    return ledger


RUN = f"1-{TEN - 7200}/1"
BESIDE = f"2-{TEN + 60 - 7200}/1"


def test_what_is_found_is_shown_first_then_credited_once(imported: Ledger) -> None:
    heads = imported.heads()
    shown = imported("incident", "credit", "--cluster", "alpha", "--to", "2026-03-02", "--dry-run")
    assert (shown.status, shown.out) == (0, "1 incident with 2 runs not credited\n")
    assert shown.err.splitlines() == [
        f"+ incident {INCIDENT}  node_fail, noticed 2026-03-01T10:00:00Z",
        f"+   credit {RUN}",
        f"+   credit {BESIDE}",
    ]
    assert imported.heads() == heads

    done = imported.done("incident", "credit", "--cluster", "alpha", "--to", "2026-03-02", "--yes")
    assert done == {
        "cluster": "alpha",
        "incidents": [
            {
                "incident": INCIDENT,
                "host": "node1",
                "fault": "node_fail",
                "runs": [RUN, BESIDE],
                "credited": [RUN, BESIDE],
            }
        ],
        "revised": [],
        "applied": True,
    }
    again = imported("incident", "credit", "--cluster", "alpha", "--to", "2026-03-02")
    assert (again.status, again.out, again.err) == (0, "nothing to credit\n", "")
    imported.checked_digest()


def test_a_credit_whose_facts_were_superseded_is_withdrawn(imported: Ledger, tmp_path: Path) -> None:
    imported.done("incident", "credit", "--cluster", "alpha", "--to", "2026-03-02")
    fact = Ended(cluster="alpha", workload=RUN.split("/", maxsplit=1)[0], run="1", reason="completed")
    _, truth = make(id="truth", source="reconcile/sacct", at_s=TEN, data=fact)
    (tmp_path / "truth.ndjson").write_bytes(truth + b"\n")
    imported.done("import", "events", tmp_path / "truth.ndjson")
    order = ("incident", "credit", "--cluster", "alpha", "--to", "2026-03-02")
    shown = imported(*order, "--dry-run")
    assert (shown.status, shown.out) == (0, "2 credits not revised\n")
    assert shown.err.splitlines() == [
        f"- credit {RUN}  {INCIDENT}: superseded",
        f"- credit {BESIDE}  {INCIDENT}: superseded",
    ]
    done = imported.done(*order)
    assert done["revised"] == [
        {"incident": INCIDENT, "run": run, "state": "withdrawn"} for run in (RUN, BESIDE)
    ]
    (listed,) = imported.done("incident", "list")["incidents"]
    assert {(run["state"], run["credited_gpu_ms"]) for run in listed["runs"]} == {("withdrawn", 0)}
    again = imported(*order)
    assert (again.status, again.out, again.err) == (0, "nothing to credit\n", "")


def test_all_that_happened_up_to_now_is_searched_unless_told_otherwise(imported: Ledger) -> None:
    found = imported.done("incident", "credit", "--cluster", "alpha", "--dry-run")
    assert [i["incident"] for i in found["incidents"]] == [INCIDENT, "node3@2026-03-02T10:00:00Z"]
    assert found["applied"] is False


def test_incidents_are_listed_with_their_runs(imported: Ledger) -> None:
    imported.done("incident", "credit", "--cluster", "alpha")
    first, second = imported.done("incident", "list")["incidents"]
    assert {
        key: first[key] for key in ("cluster", "incident", "host", "fault", "gpu_uuids", "noticed_at")
    } == {
        "cluster": "alpha",
        "incident": INCIDENT,
        "host": "node1",
        "fault": "node_fail",
        "gpu_uuids": None,
        "noticed_at": "2026-03-01T10:00:00Z",
    }
    assert [(run["run"], run["account"], run["state"]) for run in first["runs"]] == [
        (RUN, "alpha/vision", "credited"),
        (BESIDE, "alpha/vision", "credited"),
    ]
    assert second["host"] == "node3"
    assert imported.done("incident", "list", "--to", "2026-03-02")["incidents"] == [first]
    assert imported.done("incident", "list", "--as-of", "2020-01-01T00:00:00Z")["incidents"] == []
    people = imported("incident", "list", "--cluster", "alpha")
    assert people.status == 0
    assert BESIDE in people.out
    assert "credited GPU-h" in people.out


def test_a_credit_is_reversed_for_one_run_then_for_all(imported: Ledger) -> None:
    imported.done("incident", "credit", "--cluster", "alpha")
    order = ("incident", "reverse", INCIDENT, "--cluster", "alpha", "--reason", "false alarm")
    shown = imported(*order, "--run", RUN, "--dry-run")
    assert (shown.status, shown.out) == (0, "1 credit not reversed\n")
    assert shown.err == f"- credit {RUN}  {INCIDENT}\n"

    done = imported.done(*order, "--run", RUN, "--by", "grace", "--yes")
    assert (done["runs"], done["repeated"], done["applied"]) == ([RUN], [], True)
    rest = imported.done(*order)
    assert (rest["runs"], rest["repeated"]) == ([BESIDE], [RUN])
    again = imported(*order)
    assert (again.status, again.out) == (0, "nothing to reverse: 2 credits reversed before\n")
    (first, _) = imported.done("incident", "list")["incidents"]
    assert [(run["state"], run["reason"]) for run in first["runs"]] == [("reversed", "false alarm")] * 2
    assert first["runs"][0]["by"] == "grace"
    assert imported.done("incident", "credit", "--cluster", "alpha")["incidents"] == []
    imported.checked_digest()


REFUSED = [
    (["list", "--cluster", "beta"], 4, "cluster 'beta' does not exist"),
    (["credit", "--cluster", "beta"], 4, "cluster 'beta' does not exist"),
    (["credit"], 2, "--cluster"),
    (["credit", "--cluster", "alpha", "--from", "never"], 2, "'never' is not a time"),
    (
        ["reverse", "nothing", "--cluster", "alpha", "--reason", "x"],
        4,
        "incident 'nothing' is not known in alpha",
    ),
    (["reverse", INCIDENT, "--cluster", "alpha"], 2, "--reason"),
    (["reverse", INCIDENT, "--cluster", "alpha", "--reason", ""], 2, "a reversal needs a reason"),
    (
        ["reverse", INCIDENT, "--cluster", "alpha", "--reason", "x", "--run", "w/9"],
        4,
        "gave nothing to w/9",
    ),
]


@pytest.mark.parametrize(("arguments", "status", "expected"), REFUSED)
def test_what_cannot_be_is_refused(
    imported: Ledger, arguments: list[str], status: int, expected: str
) -> None:
    imported.done("incident", "credit", "--cluster", "alpha")
    heads = imported.heads()
    ran = imported("incident", *arguments)
    assert (ran.status, ran.out) == (status, "")
    assert expected in ran.err
    assert imported.heads() == heads


def test_a_reversal_for_another_reason_is_refused(imported: Ledger) -> None:
    imported.done("incident", "credit", "--cluster", "alpha")
    order = ("incident", "reverse", INCIDENT, "--cluster", "alpha", "--by", "grace", "--reason")
    imported.done(*order, "false alarm")
    ran = imported(*order, "typed the wrong name", "--json")
    assert ran.status == 2
    assert ran.problem["error"] == "the credit was reversed before, by grace: false alarm"
