"""Schedulers' traps that lie in a record of Slurm itself: its resources, its times, its bytes, its editions.

Amounts are GPU-seconds. A case goes through the source to events, and from these to what is charged; a case that
several formats can show is told in each of them.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.sources.slurm.told import (
    FORMATS,
    HOUR,
    T,
    Told,
    accounting,
    codes,
    document,
    gpu_seconds,
    histories,
    listing,
    of,
    read,
    read_fixture,
    row,
    traps,
    understood,
    written,
)

from gpuledger.events.envelope import Event
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.charges import WEIGHTED, desired
from gpuledger.ledger.rates import Rates, Version
from gpuledger.sources.protocol import ImportOptions

JSON, TEXT, JOBCOMP, REST = "slurm-sacct-json", "slurm-sacct-text", "slurm-jobcomp", "slurmrestd"
RUN = Told()
W = f"4711-{T}"
CHARGED = {W: 8 * 17_100}


def told_in(tmp_path: Path, name: str, *runs: Told) -> list[Event]:
    return understood(read(name, tmp_path, written(name, *runs)))


@traps(8, TEXT, JSON)
@pytest.mark.parametrize("name", [JSON, TEXT])
def test_8_times_that_were_clipped_to_a_window_are_refused(tmp_path: Path, name: str) -> None:
    clipped = replace(RUN, start=T + HOUR, elapsed=17_100)
    assert codes(read(name, tmp_path, written(name, clipped))) == ["clipped-times"]


@traps(9, JSON, TEXT, JOBCOMP)
@pytest.mark.parametrize("name", [JSON, TEXT, JOBCOMP])
def test_9_a_negative_length_is_charged_0_kept_and_reported(tmp_path: Path, name: str) -> None:
    items = read(name, tmp_path, written(name, replace(RUN, state="FAILED", end=T + 60, elapsed=0)))
    assert gpu_seconds(understood(items)) == {}
    assert len(understood(items)) == 3
    assert codes(items) == ["end-before-start"]


TRES = {
    12: ("gres/gpu=8,gres/gpu:h100=8", 8000, "h100"),
    13: ("gres/gpu:rtx8000=1", 1000, "rtx8000"),
    14: ("gres/gpu=8,gres/gpu:a100=4,gres/gpu:h100=4", 8000, "a100:4000,h100:4000"),
    15: ("gres/gpu=2,gres/gpumem=160,gres/gpuutil=200", 2000, None),
    16: ("cpu=8,gres/gpu=8,node=4", 8000, None),
    18: ("billing=3000,gres/gpu=2", 2000, None),
}


@traps(12, *FORMATS)
@traps(13, *FORMATS)
@traps(14, *FORMATS)
@traps(15, *FORMATS)
@traps(16, *FORMATS)
@traps(18, *FORMATS)
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("number", TRES)
def test_12_to_18_trackable_resources_name_gpus_once(tmp_path: Path, name: str, number: int) -> None:
    tres, milli, model = TRES[number]
    (started,) = of(told_in(tmp_path, name, replace(RUN, tres=tres, asked=tres)), "started")
    assert (started.data.gpus_milli, started.data.gpu_model) == (milli, model)


@traps(14, JSON)
def test_14_each_type_is_weighed_by_its_own_rate(tmp_path: Path) -> None:
    run = replace(RUN, tres=TRES[14][0], asked=TRES[14][0])
    ((_, history),) = histories(told_in(tmp_path, JSON, run)).items()
    card = Rates.of([Version(0, 1, {"a100": 1000, "h100": 2500})])
    weighted = sum(n for key, n in desired(history, Calendar(), card).items() if key.commodity == WEIGHTED)
    assert weighted == 17_100 * (4000 * 1000 + 4000 * 2500)


@traps(17, JSON, TEXT)
@pytest.mark.parametrize("name", [JSON, TEXT])
def test_17_gpus_that_nobody_tracks_are_an_alarm_and_not_0(tmp_path: Path, name: str) -> None:
    items = read(
        name, tmp_path, written(name, replace(RUN, tres="cpu=1", asked="cpu=1", command="sbatch --gpus 4"))
    )
    assert codes(items) == ["gpus-not-tracked"]
    assert of(understood(items), "started") == []  # a run of 0 GPUs would be a claim


@traps(17, REST)
def test_17_a_real_cluster_that_tracks_no_gpus() -> None:
    assert codes(read_fixture(REST, "slurm-web/slurmdb-job-gpus-completed.json.gz")) == ["gpus-not-tracked"]
    (started,) = of(understood(read_fixture(REST, "slurm-web/slurm-job-gpus-multi-nodes.json.gz")), "started")
    assert started.data.gpus_milli == 8000


@traps(19, *FORMATS)
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("tres", "milli"),
    [
        ("gres/gpu:1g.10gb=1,gres/gpu=1", 142),
        ("gres/gpu:1g.10gb=7,gres/gpu=7", 1000),
        ("gres/shard=20", 2500),
    ],
)
def test_19_a_part_of_a_gpu_is_what_the_rate_card_says(
    tmp_path: Path, name: str, tres: str, milli: int
) -> None:
    content = written(name, replace(RUN, tres=tres, asked=tres))
    items = read(name, tmp_path, content, ImportOptions(fractions={"shard": 125}))
    (started,) = of(understood(items), "started")
    assert started.data.gpus_milli == milli
    if "shard" in tres:
        assert codes(read(name, tmp_path, content)) == ["unknown-fraction"]


@traps(36, JSON, TEXT)
@pytest.mark.parametrize("name", [JSON, TEXT])
@pytest.mark.parametrize("account", ["prog-0", "prog-z"])
def test_36_an_edited_record_wins_and_both_stay(tmp_path: Path, name: str, account: str) -> None:
    edited = replace(RUN, account=account, altered=True)
    for runs in ((RUN, edited), (edited, RUN)):
        events = told_in(tmp_path, name, *runs)
        (history,) = histories(events).values()
        assert {segment.account for segment in history.segments} == {f"alpha/{account}"}
        assert len({e.id for e in events}) == 6


@traps(37, TEXT)
def test_37_line_ends_and_broken_bytes_in_names_do_not_move_a_field(tmp_path: Path) -> None:
    content = listing(row(RUN) | {"JobName": "a\nb"}).replace(b"|a\n", b"|\xff\n")
    assert gpu_seconds(understood(read(TEXT, tmp_path, content))) == CHARGED
    assert codes(read(TEXT, tmp_path, listing(row(RUN) | {"JobName": "a|b"}))) == ["wrong-columns"]
    sample = "meta-gcm/sample-sacct-fake-line-break.txt.gz"
    found = gpu_seconds(understood(read_fixture(TEXT, sample)))
    assert sorted(found.values()) == [256 * 87_356, 1024 * 79_396]


@traps(37, JSON)
def test_37_a_name_of_any_text_changes_nothing_in_json(tmp_path: Path) -> None:
    record = accounting(RUN) | {"name": 'a|b\n"c"\u2028', "comment": {"job": "\t"}}
    assert gpu_seconds(understood(read(JSON, tmp_path, document(record)))) == CHARGED


@traps(38, JSON, REST)
@pytest.mark.parametrize("name", [JSON, REST])
def test_38_a_greeting_before_the_json_is_passed_over_and_reported(tmp_path: Path, name: str) -> None:
    items = read(name, tmp_path, b"** Welcome [to] login1 **\n" + written(name, RUN))
    assert (codes(items), gpu_seconds(understood(items))) == (["banner"], CHARGED)


def local(start: str, end: str, elapsed: int) -> bytes:
    return listing(
        row(Told(tres="gres/gpu=1", elapsed=elapsed))
        | {"Submit": "2026-03-01T00:00:00", "Eligible": "Unknown", "Start": start, "End": end}
    )


@traps(39, TEXT)
def test_39_clocks_that_go_back_hide_no_hour(tmp_path: Path) -> None:
    content = local("2026-11-01T01:30:00", "2026-11-01T01:30:00", 3600)
    items = read(TEXT, tmp_path, content, ImportOptions(timezone="America/New_York"))
    assert list(gpu_seconds(understood(items)).values()) == [3600]


@traps(40, TEXT)
def test_40_clocks_that_go_forward_invent_no_hour(tmp_path: Path) -> None:
    content = local("2026-03-08T01:30:00", "2026-03-08T03:30:00", 3600)
    items = read(TEXT, tmp_path, content, ImportOptions(timezone="America/New_York"))
    assert list(gpu_seconds(understood(items)).values()) == [3600]


@traps(41, TEXT)
def test_41_text_without_an_offset_is_utc_unless_the_import_says_otherwise(tmp_path: Path) -> None:
    content = listing(row(RUN))
    assert of(understood(read(TEXT, tmp_path, content)), "started")[0].at_s == RUN.start
    berlin = read(TEXT, tmp_path, content, ImportOptions(timezone="Europe/Berlin"))
    assert of(understood(berlin), "started")[0].at_s == (RUN.start or 0) - HOUR


@traps(41, JOBCOMP)
def test_41_documents_are_utc_in_every_zone(tmp_path: Path) -> None:
    berlin = read(JOBCOMP, tmp_path, written(JOBCOMP, RUN), ImportOptions(timezone="Europe/Berlin"))
    assert of(understood(berlin), "started")[0].at_s == RUN.start


@traps(47, JSON)
def test_47_a_blank_sentinel_is_missing(tmp_path: Path) -> None:
    record = accounting(RUN)
    record["time"] |= {"limit": 0xFFFFFFFFFFFFFFFE, "suspended": 0xFFFFFFFE}
    (event, *_) = understood(read(JSON, tmp_path, document(record)))
    assert event.data.time_limit_s is None


@traps(57, JSON)
def test_57_seconds_are_whole(tmp_path: Path) -> None:
    record = accounting(RUN)
    record["time"]["start"] = {"set": True, "infinite": False, "number": float(RUN.start or 0)}
    assert gpu_seconds(understood(read(JSON, tmp_path, document(record)))) == CHARGED
