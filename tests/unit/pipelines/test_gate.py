import datetime as dt

import sqlalchemy as sa

from gpuledger.kernel.calendar import Calendar
from gpuledger_pipelines.gate import BUCKETS, DAYS, PERIODS, Finding, Subject, Verdict, in_place
from gpuledger_pipelines.partitions import Span


def subject(cluster: str = "c", zone: str = "UTC") -> Subject:
    start = dt.datetime(2024, 3, 31, tzinfo=dt.UTC)
    start_s = int(start.timestamp())
    return Subject(Span(cluster, start_s, start_s + 86_400, start_s + 5), Calendar(zone))


def test_times_are_written_as_numbers() -> None:
    written = in_place(BUCKETS, subject())
    assert written == "bucket_at >= to_timestamp(1711843200) AND bucket_at < to_timestamp(1711929600)"


def test_days_and_periods_are_the_organisations() -> None:
    assert in_place(DAYS, subject(zone="Asia/Kolkata")) == (
        "day BETWEEN DATE '2024-03-31' AND DATE '2024-04-01'"
    )
    assert in_place(PERIODS, subject(zone="Asia/Kolkata")) == "period BETWEEN '2024-03' AND '2024-04'"


def test_a_clusters_name_is_data_whatever_it_holds() -> None:
    name = "'; DROP TABLE x; -- {batch} :from_s %s"
    written = in_place("cluster = :cluster", subject(name))
    assert not {"'; ", "{", "%"} & {written[i : i + n] for n in (1, 3) for i in range(len(written))}
    assert sa.text(written).compile().params == {}


def test_a_finding_shows_its_rows() -> None:
    finding = Finding("nothing is wrong", 2, ({"hour_at": "12:00", "gpu_ms": -1},))
    assert finding.as_markdown().splitlines() == [
        "2 rows fail", "", "| hour_at | gpu_ms |", "| --- | --- |", "| 12:00 | -1 |",
    ]  # fmt: skip
    assert finding.as_text() == "nothing is wrong: 2 rows, first: hour_at=12:00, gpu_ms=-1"


def test_a_finding_without_rows_is_told_all_the_same() -> None:
    assert Finding("columns match", None).as_text() == "columns match"
    assert Finding("columns match", None).as_markdown() == "it fails"


def test_a_verdict_sums_up() -> None:
    assert Verdict(8).summary == "8 expectations hold"
    failed = Verdict(8, (Finding("a", None), Finding("b", None)), outdated=True)
    assert not failed.passed
    assert failed.summary == "a; b (the ledger has moved on since; run again)"
