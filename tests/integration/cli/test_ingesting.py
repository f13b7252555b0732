"""``import`` and ``ingest``: from files, through file streams, through Kafka - the same ledger."""

import re
from pathlib import Path

import pytest
from tests.brokers import fixtures as brokers
from tests.commands.fixtures import Ledger
from tests.commands.traces import ALEX, OPENB_PODS

from gpuledger.cli.ingesting import SOURCES
from gpuledger.events.envelope import key_of, make
from gpuledger.events.workload import Submitted
from gpuledger.sources.registry import names
from gpuledger.streams.files import FileBroker
from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import SCHEDULER_EVENTS

kafka_bootstrap = brokers.kafka_bootstrap
empty_kafka = brokers.empty_kafka

TRACE = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-01 00:00:00,3600.0,1,3600.0,Team A\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return path


def test_the_cluster_can_be_named(ledger: Ledger, trace: Path) -> None:
    ledger.done("import", "philly", trace, "--cluster", "mine")
    assert ledger.hours("account") == {"mine/team%20a": "1.000"}
    assert ledger.hours("cluster") == {"mine": "1.000"}


def test_naive_times_are_read_in_the_zone_that_is_named(ledger: Ledger, trace: Path) -> None:
    ledger.done("import", "philly", trace, "--tz", "America/Los_Angeles")
    ((start,),) = ledger.rows("SELECT from_at AT TIME ZONE 'UTC' FROM ledger.segments")
    assert start.isoformat() == "2017-10-01T07:00:00"


def test_a_name_that_no_file_can_have_is_bad_usage(ledger: Ledger) -> None:
    ran = ledger("import", "philly", "x" * 5000, "--json")
    assert (ran.status, ran.out) == (2, "")
    assert "File name too long" in ran.problem["error"]


def test_anomalies_are_reported_and_counted(ledger: Ledger) -> None:
    report = ledger.done("import", "clustercockpit", ALEX)
    assert {a["code"] for a in report["anomalies"]} == {"past-time-limit", "gpu-count-differs"}
    assert all(a.keys() == {"code", "line", "message"} for a in report["anomalies"])
    people = ledger("import", "clustercockpit", ALEX)
    assert people.out.startswith("544 records: 0 accepted, 544 repeated, 0 dead-lettered\n")
    assert "anomaly past-time-limit: 23 (first: " in people.out


def test_ingest_without_kafka_reads_the_streams_of_the_folder(ledger: Ledger) -> None:
    broker = FileBroker(ledger.home / "streams")
    broker.ensure_topics([SCHEDULER_EVENTS])
    fact = Submitted(cluster="alpha", workload="w", account="org/a", user="ada", gpus_milli=1000)
    event, value = make(id="w/submitted", source="test", at_s=0, data=fact)
    publisher = broker.publisher()
    publisher.publish(SCHEDULER_EVENTS, [Message(key_of(event.data), value), Message("x", b"garbage")])
    publisher.close()

    first, again = ledger("ingest", "--once"), ledger("ingest", "--once")

    assert (first.status, first.out) == (0, "")
    assert first.err.splitlines()[-1] == "1 accepted, 0 repeated, 1 dead-lettered"
    assert again.err.splitlines()[-1] == "0 accepted, 0 repeated, 0 dead-lettered"
    assert [letter["place"] for letter in ledger.done("dlq", "list")["dead_letters"]] == [
        "gpu.scheduler.events[0]@1"
    ]


@pytest.mark.kafka
def test_an_import_through_kafka_books_the_same(ledger: Ledger, empty_kafka: str) -> None:
    through = {"GPULEDGER_KAFKA_BOOTSTRAP": empty_kafka}
    for source, path, records in (("clustercockpit", ALEX, 544), ("openb", OPENB_PODS, 8152)):
        report = ledger.done("import", source, path, **through)
        assert (report["records"], report["accepted"], report["repeated"]) == (records, records, 0)
    heads, digest = ledger.heads(), ledger.digest()
    assert ledger.hours("cluster", "--cluster", "alex") == {"alex": "3980.037"}
    assert ledger.hours("cluster", "--cluster", "openb") == {"openb": "51470.674"}

    again = ledger.done("import", "clustercockpit", ALEX, **through)
    straight = ledger.done("import", "openb", OPENB_PODS)

    assert (again["accepted"], again["repeated"]) == (0, 544)
    assert (straight["accepted"], straight["repeated"]) == (0, 8152)
    assert (ledger.heads(), ledger.digest()) == (heads, digest)


SHARDS = (
    "JobID|JobIDRaw|Cluster|Account|User|Submit|Start|End|State|AllocTRES|NNodes|NodeList\n"
    "7|7|lab|prog|ada|2026-11-01T00:00:00|2026-11-01T00:00:00|2026-11-01T01:00:00|COMPLETED|gres/shard=4|1|n1\n"
)


def test_a_part_of_a_gpu_is_as_large_as_it_is_said_to_be(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    path.write_text(SHARDS)
    refused = ledger("import", "slurm-sacct-text", path, "--json")
    assert (refused.status, refused.json["dead_lettered"]) == (3, 1)
    assert ledger.done("import", "slurm-sacct-text", path, "--fraction", "shard=125")["accepted"] == 1
    assert ledger.hours("cluster") == {"lab": "0.500"}


@pytest.mark.parametrize("given", ["shard", "shard=", "=5", "shard=x", "shard=0", "shard=1001", "shard=-1"])
def test_a_fraction_that_is_none_is_refused(ledger: Ledger, trace: Path, given: str) -> None:
    refused = ledger("import", "philly", trace, "--fraction", given)
    assert refused.status == 2
    assert "--fraction" in refused.err


def test_help_names_the_sources_there_are(ledger: Ledger) -> None:
    listed = " ".join(ledger("import", "--help").out.replace("-\n", "-").split())
    assert SOURCES.split(", ") == names()
    assert all(re.search(rf"[ :]{name}[,.]", listed) for name in names() if "-" not in name)
