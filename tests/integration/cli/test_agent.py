"""``agent nvml`` as a command, where there is no driver; and imports of telemetry with what only a person can say."""

from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger


def test_without_a_driver_the_agent_lives_and_says_why_it_is_silent(ledger: Ledger) -> None:
    ran = ledger(
        "agent", "nvml", "--cluster", "west", "--host", "n1", "--sample", "1", "--interval", "1", "--once"
    )
    if "driver does not answer" not in ran.err:
        pytest.skip("there is a driver here; tests/unit/agent/test_nvml.py asks it")
    assert ran.status == 0, ran.err
    assert ran.err.count("driver does not answer") == 1
    folder = ledger.home / "streams/gpu.scheduler.events"
    (line,) = b"".join(path.read_bytes() for path in folder.glob("*.ndjson")).splitlines()
    assert b"org.gpuledger.source.heartbeat.v1" in line
    assert list((ledger.home / "agent").glob("*.message")) == []


@pytest.mark.parametrize(
    "options", [("--cluster", "Not A Cluster"), ("--cluster", "west", "--scheduler", "lsf"), ()]
)
def test_wrong_options_are_bad_usage(ledger: Ledger, options: tuple[str, ...]) -> None:
    assert ledger("agent", "nvml", *options).status == 2


def test_a_scrape_needs_its_time_and_is_counted_once(ledger: Ledger, repository: Path) -> None:
    scrape = repository / "tests/fixtures/sources/telemetry/h100.prom"
    refused = ledger("import", "dcgm", scrape, "--cluster", "west")
    assert refused.status == 2
    assert "--at" in refused.err
    told = ("import", "dcgm", scrape, "--cluster", "west", "--at", "2026-11-30T12:00:00Z")
    assert (ledger.done(*told)["accepted"], ledger.done(*told)["repeated"]) == (1, 1)
    rows = ledger.rows(
        "SELECT gpu, run, rung, sampled_gpu_ms, used_gpu_upms FROM telemetry.buckets ORDER BY gpu, rung"
    )
    assert rows == [
        ("GPU-0a", "job/4711", "gpu_util", 1000, 970_000_000),
        ("GPU-0a", "job/4711", "gr_engine_active", 1000, 913_000_000),
        ("GPU-0a", "job/4711", "tensor_active", 1000, 401_000_000),
        ("GPU-1b", "pod/vision/train-0", "gpu_util", 1000, 0),
        ("GPU-2c/2", "", "gr_engine_active", 428, 107_000_000),
        ("GPU-2c/7", "", "gr_engine_active", 143, 71_500_000),
    ]


def test_a_kernel_log_makes_a_host_unhealthy_and_a_table_says_otherwise(
    ledger: Ledger, repository: Path, tmp_path: Path
) -> None:
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text("clusters: {west: {hosts: [{name: n1, gpus: 8, model: h100}]}}")
    ledger.done("inventory", "apply", inventory, "--from", "2025-02-01", "--yes")
    log = repository / "tests/fixtures/sources/telemetry/gpud-xid/dmesg-with-xid-119.log"
    imported = ledger.done("import", "xid-log", log, "--cluster", "west", "--host", "n1", "--tz", "UTC")
    assert imported["accepted"] == 5
    now = "SELECT state FROM ledger.hosts WHERE host = 'n1' AND until_seq IS NULL AND to_at IS NULL"
    assert ledger.rows(now) == [("unhealthy",)]
    table = tmp_path / "policy.yaml"
    table.write_text(
        "xid_table: {unhealthy: [48, 79], draining: [63], application: [119], repeated: {74: {times: 2, within_h: 24}},"
        " remap_failed: unhealthy, remap_pending: draining, lost: unhealthy}"
    )
    done = ledger.done("policy-data", "apply", table, "--from", "2025-01-01", "--yes")
    assert "~ xid      119  unhealthy -> application" in done["changes"]
    assert ledger("policy-data", "apply", table, "--from", "2025-01-01", "--yes").out == "nothing to change\n"
    assert ledger.rows(now) == [("healthy",)]
    listed = (ledger.done("policy-data", "list", "--at", day) for day in ("2024-12-31", "2025-01-01"))
    before, after = (document["xid_table"] for document in listed)
    assert 119 in before["unhealthy"]
    assert after["application"] == [119]
    people = ledger("policy-data", "list", "--at", "2025-01-01").out
    assert "unhealthy when 2 times in 24 h" in people
    assert "an XID table" in people
    ledger.checked_digest()
