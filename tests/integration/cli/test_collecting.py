"""``gpuledger collect``: what Slurm's commands print, and what it writes to Kafka, reach the ledger."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from tests.accounting import NODE, document, job
from tests.brokers import fixtures
from tests.collecting import Bin
from tests.commands.fixtures import Ledger
from tests.commands.running import finish, kill, start
from tests.integration.collect.test_bridge import ONE, TWO

kafka_bootstrap = fixtures.kafka_bootstrap

NOW_S = 1_796_000_000


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bin:
    """Commands of a cluster on which one job has run."""
    commands = Bin(tmp_path / "bin", monkeypatch)
    (tmp_path / "jobs.json").write_text(document([job(1, NOW_S - 600, NOW_S - 300)]))
    (tmp_path / "nodes.txt").write_text(NODE)
    commands.put("sacct", f"cat {tmp_path}/jobs.json")
    commands.put("squeue", "echo '{\"jobs\": []}'")
    commands.put(
        "scontrol", f'case "$*" in *config*) echo "ClusterName = Alpha";; *) cat {tmp_path}/nodes.txt;; esac'
    )
    return commands


def test_one_look_books_and_says_what_it_found(ledger: Ledger, commands: Bin) -> None:
    found = ledger.done("collect", "slurm", "--once", "--since", "2026-11-01")

    assert found["failures"] == []
    assert {name: report["accepted"] for name, report in found["sources"].items()} == {
        "slurm-sacct-json": 1, "slurm-squeue-json": 0, "slurm-nodes": 1,
    }  # fmt: skip
    (row,) = ledger.usage("account")["rows"]
    assert (row["key"], row["gpu_ms"]) == ("alpha/vision", 600_000)
    again = ledger("collect", "slurm", "--once")
    assert "slurm-sacct-json 1 records, 0 new" in again.err


def test_a_command_that_fails_can_be_tried_again_and_a_record_that_cannot_be_read_is_a_problem(
    ledger: Ledger, commands: Bin, tmp_path: Path
) -> None:
    (tmp_path / "jobs.json").write_text(document([job(1, NOW_S - 600, state="FROZEN")]))
    problem = ledger("collect", "slurm", "--once")
    assert problem.status == 3
    assert "dead letter: " in problem.err

    commands.put("squeue", "echo no controller >&2; exit 1")
    failed = ledger("collect", "slurm", "--once", "--json")
    assert failed.status == 75
    assert failed.json["failures"] == ["squeue failed with status 1: no controller"]


def test_without_slurm_it_says_where_to_run(ledger: Ledger, commands: Bin) -> None:
    commands.take("scontrol")

    refused = ledger("collect", "slurm", "--once", "--json")

    assert refused.status == 2
    assert refused.problem["error"] == "scontrol is not installed here"


def test_it_goes_on_until_it_is_stopped_and_outlives_a_scheduler_that_is_away(
    ledger: Ledger, commands: Bin, tmp_path: Path
) -> None:
    commands.put("sacct", f"if [ -e {tmp_path}/up ]; then cat {tmp_path}/jobs.json; else exit 1; fi")
    process = start(
        "collect",
        "slurm",
        "--every",
        "5",
        "--cluster",
        "beta",
        "--since",
        "2026-11-01",
        settings=ledger.settings,
    )
    try:
        _until(lambda: _has(ledger, "host.registered"))
        assert not _has(ledger, "workload.ended")
        (tmp_path / "up").touch()
        _until(lambda: _has(ledger, "workload.ended"))
        process.terminate()
        ran = finish(process, within_s=30)
    finally:
        kill(process)
    assert ran.status == 143
    assert "failed: sacct failed with status 1" in ran.err


def _has(ledger: Ledger, name: str) -> bool:
    return ledger.rows("SELECT 1 FROM ledger.journal WHERE book = 'beta' AND type = :name", name=name) != []


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_bad_options_are_refused(ledger: Ledger, commands: Bin) -> None:
    assert ledger("collect", "slurm", "--once", "--every", "1").status == 2
    assert ledger("collect", "slurm", "--once", "--cluster", "No Name").status == 2
    assert ledger("collect", "slurm", "--once", "--since", "yesterday").status == 2


def test_documents_need_kafka_and_a_topic_of_slurms_own(ledger: Ledger) -> None:
    refused = ledger("collect", "slurm-jobcomp", "slurm.jobcomp", "--json")
    assert (refused.status, refused.problem["error"]) == (2, "slurm-jobcomp reads from Kafka")

    own = ledger(
        "collect", "slurm-jobcomp", "gpu.telemetry", "--json", GPULEDGER_KAFKA_BOOTSTRAP="127.0.0.1:1"
    )
    assert (own.status, own.problem["error"]) == (2, "TOPIC: gpu.telemetry is gpuledger's own")


@pytest.mark.kafka
def test_documents_of_a_topic_are_booked_once(ledger: Ledger, kafka_bootstrap: str) -> None:
    topic = f"slurm.jobcomp.{time.monotonic_ns()}"
    admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    admin.create_topics({topic: {"num_partitions": 2}})
    admin.wait_for_topics([topic])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=kafka_bootstrap)
    for value in (ONE, TWO, ONE):
        producer.send(topic, value)
    producer.close()
    settings = {"GPULEDGER_KAFKA_BOOTSTRAP": kafka_bootstrap}

    first = ledger.done("collect", "slurm-jobcomp", topic, "--once", **settings)
    second = ledger.done("collect", "slurm-jobcomp", topic, "--once", **settings)

    assert first == {"records": 3, "accepted": 6, "repeated": 3, "dead_lettered": 0}
    assert second == {"records": 0, "accepted": 0, "repeated": 0, "dead_lettered": 0}
    assert ledger.usage("account")["total_gpu_ms"] == 600_000 + 200_000
