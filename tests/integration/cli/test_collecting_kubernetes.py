"""``gpuledger collect kubernetes`` against recorded answers of the API, from the command to the book."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger
from tests.commands.running import start
from tests.unit.collect.recorded import Recorded, kubeconfig, served
from tests.unit.sources.kubernetes.building import (
    admission,
    assignment,
    bound,
    conditions,
    lines,
    node,
    pod,
    pod_set,
    terminated,
    workload,
)

AT_20, AT_21, AT_22 = (f"2026-10-31T{hour}:00:00Z" for hour in (20, 21, 22))
JOB = workload(
    "train",
    [pod_set("main", 2, 8)],
    {
        "conditions": conditions(Admitted=("True", "Admitted", AT_20), Finished=("True", "Succeeded", AT_22)),
        "admission": admission(assignment("main", 2, 16, "h100")),
    },
)
OF_JOB = pod("train-0", 8, bound(AT_20), metadata={"labels": {"kueue.x-k8s.io/podset": "main"}})
DONE = pod("eval", 1, bound(AT_20, "Succeeded", containerStatuses=[terminated(AT_21)]))


@pytest.fixture
def recorded() -> Recorded:
    recorded = Recorded()
    for found in (node("node-1"), JOB, OF_JOB, DONE):
        recorded.happen("ADDED", found)
    return recorded


@pytest.fixture
def config(recorded: Recorded, tmp_path: Path) -> Iterator[Path]:
    with served(recorded, tmp_path) as config:
        yield config


def test_a_look_books_what_there_is_and_the_next_only_what_is_new(
    ledger: Ledger, recorded: Recorded, config: Path, tmp_path: Path
) -> None:
    look = ("collect", "kubernetes", "--once", "--kubeconfig", config)
    first = ledger.done(*look)
    assert (first["records"], first["accepted"], first["dead_lettered"]) == (3, 3, 0)
    assert ledger.hours("account") == {"kubernetes/team-a": "33.000"}
    digest = ledger.digest()
    (tmp_path / "stream").write_bytes(lines(node("node-1"), JOB, OF_JOB, DONE))
    report = ledger.done("import", "kueue", tmp_path / "stream")
    assert (report["records"], report["accepted"], report["repeated"]) == (3, 0, 3)
    assert ledger.digest() == digest
    recorded.happen("ADDED", pod("late", 2, bound(AT_20, "Failed", containerStatuses=[terminated(AT_21, 1)])))
    assert (again := ledger.done(*look))["records"] == again["accepted"] == 1
    assert ledger.hours("month") == {"2026-10": "35.000"}


def test_what_cannot_be_read_exits_3_and_the_cluster_is_named(
    ledger: Ledger, recorded: Recorded, config: Path
) -> None:
    recorded.happen("ADDED", pod("odd", 1, bound(AT_20), resource="nvidia.com/mig-9g.9gb"))
    ran = ledger("collect", "kubernetes", "--once", "--cluster", "west", "--kubeconfig", config, "--json")
    assert (ran.status, ran.json["dead_lettered"]) == (3, 1)
    assert "dead letter: nvidia.com/mig-9g.9gb: the profile is not known" in ran.err
    assert ledger.hours("cluster") == {"west": "33.000"}
    assert (ledger.home / "collect" / "kubernetes-west.json").is_file()


def test_a_cluster_that_cannot_be_reached_exits_75_and_one_that_is_not_named_2(
    ledger: Ledger, tmp_path: Path
) -> None:
    nobody = kubeconfig(tmp_path, "http://127.0.0.1:9")
    assert ledger("collect", "kubernetes", "--once", "--kubeconfig", nobody).status == 75
    assert ledger("collect", "kubernetes", "--once", "--kubeconfig", tmp_path / "nowhere").status == 2
    assert ledger("collect", "kubernetes", "--cluster", "a/b").status == 2


@pytest.mark.kafka
def test_what_is_collected_goes_through_kafka_where_there_is_one(
    ledger: Ledger, recorded: Recorded, config: Path, empty_kafka: str
) -> None:
    """It books nothing itself: the worker does, and knows then up to when the cluster has told all."""
    through = {"GPULEDGER_KAFKA_BOOTSTRAP": empty_kafka}
    look = ("collect", "kubernetes", "--once", "--kubeconfig", config, "--json")
    first = ledger(*look, **through)
    assert (first.status, first.json["accepted"]) == (0, 3), first.err
    assert ledger.rows("SELECT 1 FROM ledger.books WHERE book = 'kubernetes'") == []

    assert ledger("ingest", "--once", **through).status == 0
    assert ledger.hours("account") == {"kubernetes/team-a": "33.000"}
    assert ledger.rows("SELECT book, source FROM ledger.watermarks") == [
        ("kubernetes", "kubernetes/kubernetes/collector")
    ]

    (ledger.home / "collect" / "kubernetes-kubernetes.json").unlink()  # as after a crash: all is listed again
    again = ledger(*look, **through)
    assert (again.json["accepted"], again.json["repeated"]) == (0, 3)
    digest = ledger.digest()
    assert ledger("ingest", "--once", **through).status == 0
    assert ledger.digest() == digest


def test_it_watches_until_it_is_interrupted(ledger: Ledger, recorded: Recorded, config: Path) -> None:
    process = start("collect", "kubernetes", "--kubeconfig", config, settings=ledger.settings)
    try:
        wait_for(ledger, "33.000")
        recorded.happen(
            "ADDED", pod("late", 2, bound(AT_20, "Failed", containerStatuses=[terminated(AT_21, 1)]))
        )
        wait_for(ledger, "35.000")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, said


def wait_for(ledger: Ledger, hours: str) -> None:
    for _ in range(120):
        if ledger.hours("month").get("2026-10") == hours:
            return
        time.sleep(0.5)
    raise AssertionError(f"{hours} GPU-hours were never booked")
