"""A collector leaves nothing out and books nothing twice, whatever happens between two looks."""

import datetime as dt
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.accounting import CLUSTER, NODE, document, job
from tests.collecting import Bin
from tests.integration.collect.conftest import NOW_S

from gpuledger.collect.cursor import Cursor
from gpuledger.collect.programs import CommandFailed, Programs
from gpuledger.collect.slurm import (
    AHEAD_S,
    HEARTBEAT_S,
    OVERLAP_S,
    Polled,
    SlurmCollector,
    cluster_of,
    local,
    windows,
)
from gpuledger.ingest.importer import BrokerSink, LedgerSink
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.worker import Worker
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.kernel.errors import Fenced
from gpuledger.sources.protocol import ImportOptions
from gpuledger.streams.files import FileBroker
from gpuledger.streams.topics import SCHEDULER_EVENTS

SINCE_S = NOW_S - 7200


class World:
    """A cluster whose commands print what they are told to, and its ledger."""

    def __init__(self, bin_: Bin, intake: Intake, clock: FixedClock, folder: Path) -> None:
        self.bin, self.intake, self.clock, self.folder = bin_, intake, clock, folder
        self.accounting()
        (folder / "nodes.txt").write_text(NODE)
        bin_.put("squeue", "echo '{\"jobs\": []}'")
        bin_.put("scontrol", f"cat {folder}/nodes.txt")

    def accounting(
        self, jobs: Iterable[dict[str, Any]] = (), by_number: Iterable[dict[str, Any]] = ()
    ) -> None:
        """Have sacct list these jobs, and those when it is asked by number."""
        (self.folder / "window.json").write_text(document(jobs))
        (self.folder / "numbers.json").write_text(document(by_number))
        self.bin.put(
            "sacct",
            f'echo "$@" >>{self.folder}/calls; case "$*" in *" -j "*) cat {self.folder}/numbers.json;;'
            f" *) cat {self.folder}/window.json;; esac",
        )

    def collector(self) -> SlurmCollector:
        programs = Programs(self.folder / "answers", attempts=1)
        return SlurmCollector(
            self.intake, LedgerSink(self.intake), programs, ImportOptions(), cluster=CLUSTER, since_s=SINCE_S
        )

    def calls(self) -> list[str]:
        """Return what sacct was asked since this was called last, without what is always there."""
        path = self.folder / "calls"
        told = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [call.removeprefix("--allusers --duplicates --json ") for call in told]

    def pass_(self, seconds: int) -> None:
        self.clock.at += dt.timedelta(seconds=seconds)

    def held(self) -> dict[str, int | None]:
        """Return the length of each job's run; None while it goes on."""
        with self.intake.engine.connect() as connection:
            rows = connection.execute(
                sa.text(
                    "SELECT workload, extract(epoch FROM to_at - from_at)::int FROM ledger.segments"
                    " WHERE until_seq IS NULL ORDER BY workload"
                )
            )
            return {workload.partition("-")[0]: length for workload, length in rows}

    def count(self, table: str, where: str = "true") -> int:
        with self.intake.engine.connect() as connection:
            return int(connection.scalar(sa.text(f"SELECT count(*) FROM ledger.{table} WHERE {where}")) or 0)


@pytest.fixture
def world(commands: Bin, intake: Intake, clock: FixedClock, tmp_path: Path) -> World:
    return World(commands, intake, clock, tmp_path)


def window(from_s: int, to_s: int) -> str:
    return f"-S {local(from_s)} -E {local(to_s)}"


def accepted(polled: Polled) -> dict[str, int]:
    return {name: report.accepted for name, report in polled.reports.items()}


def test_the_first_look_reaches_back_to_since_and_ahead_to_jobs_that_may_not_start_yet(world: World) -> None:
    world.accounting([job(1, NOW_S - 600, NOW_S - 300), job(2, NOW_S - 100)])

    polled = world.collector().poll()

    assert world.calls() == [window(SINCE_S, NOW_S + AHEAD_S)]
    assert accepted(polled) == {"slurm-sacct-json": 2, "slurm-squeue-json": 0, "slurm-nodes": 1}
    assert polled.failures == []
    assert world.held() == {"1": 300, "2": None}


def test_the_next_look_overlaps_and_books_only_what_is_new(world: World) -> None:
    collector = world.collector()
    world.accounting([job(1, NOW_S - 600, NOW_S - 300), job(2, NOW_S - 100)])
    collector.poll()
    world.calls()
    rows = world.count("journal")
    world.pass_(60)
    assert accepted(collector.poll())["slurm-sacct-json"] == 0
    assert world.count("journal") == rows

    world.accounting([job(1, NOW_S - 600, NOW_S - 300), job(2, NOW_S - 100, NOW_S + 20)])
    world.pass_(60)
    collector.poll()

    assert world.calls()[-1] == window(NOW_S + 60 - OVERLAP_S, NOW_S + 120 + AHEAD_S)
    assert world.held() == {"1": 300, "2": 120}


def test_a_collector_that_died_before_it_noted_how_far_it_was_asks_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(self: Cursor, at_s: int) -> None:
        raise KeyboardInterrupt

    world.accounting([job(1, NOW_S - 600, NOW_S - 300)])
    with monkeypatch.context() as patch:
        patch.setattr(Cursor, "advance", die)
        with pytest.raises(KeyboardInterrupt):
            world.collector().poll()
    rows = world.count("postings", "code = 'charge'")
    world.calls()

    assert accepted(world.collector().poll())["slurm-sacct-json"] == 0

    assert world.calls() == [window(SINCE_S, NOW_S + AHEAD_S)]
    assert world.held() == {"1": 300}
    assert world.count("postings", "code = 'charge'") == rows


def test_a_long_absence_is_asked_for_a_day_at_a_time(world: World) -> None:
    world.collector().poll()
    world.calls()
    day_s = 86_400
    world.pass_(2 * day_s)

    world.collector().poll()

    begin_s, end_s = NOW_S - OVERLAP_S, NOW_S + 2 * day_s
    assert world.calls() == [
        window(begin_s, begin_s + day_s),
        window(begin_s + day_s, begin_s + 2 * day_s),
        window(begin_s + 2 * day_s, end_s + AHEAD_S),
    ]


def test_a_run_that_no_window_lists_any_more_is_asked_for_by_its_number(world: World) -> None:
    collector = world.collector()
    world.accounting([job(7, NOW_S - 100)])
    collector.poll()
    world.pass_(2 * OVERLAP_S)
    world.accounting([], by_number=[job(7, NOW_S - 100, NOW_S)])
    world.calls()

    collector.poll()

    assert world.calls()[1:] == ["-j 7"]
    assert world.held() == {"7": 100}
    collector.poll()
    assert [call for call in world.calls() if call.startswith("-j")] == []


def test_a_run_that_accounting_has_forgotten_is_asked_for_now_and_then(world: World) -> None:
    collector = world.collector()
    world.accounting([job(7, NOW_S - 100)])
    collector.poll()
    world.accounting()
    asked = []
    for _ in range(4):
        world.pass_(OVERLAP_S // 2)
        collector.poll()
        asked.append("-j 7" in world.calls())

    assert asked == [True, False, True, False]
    assert world.held() == {"7": None}


def test_a_command_that_fails_keeps_neither_the_others_nor_the_next_look_from_their_work(
    world: World,
) -> None:
    collector = world.collector()
    world.bin.put("sacct", "echo 'no connection to slurmdbd' >&2; exit 1")

    failed = collector.poll()

    assert [failure.message for failure in failed.failures] == [
        "sacct failed with status 1: no connection to slurmdbd"
    ]
    assert set(failed.reports) == {"slurm-squeue-json", "slurm-nodes"}
    assert world.count("journal", "type = 'source.heartbeat'") == 0
    world.accounting([job(1, NOW_S - 600, NOW_S - 300)])
    world.pass_(60)
    collector.poll()
    assert world.calls() == [window(SINCE_S, NOW_S + 60 + AHEAD_S)]
    assert world.held() == {"1": 300}


def test_an_answer_of_another_kind_counts_as_none(world: World) -> None:
    world.bin.put("squeue", "echo Slurm is being upgraded")
    world.accounting([job(1, NOW_S - 600, NOW_S - 300)])

    polled = world.collector().poll()

    (failure,) = polled.failures
    assert failure.message.startswith("squeue printed what is no answer: ")
    assert world.held() == {"1": 300}


def test_that_all_is_known_is_told_now_and_then(world: World) -> None:
    collector = world.collector()
    for _ in range(4):
        collector.poll()
        world.pass_(HEARTBEAT_S // 2)

    with world.intake.engine.connect() as connection:
        rows = connection.exec_driver_sql(
            "SELECT extract(epoch FROM effective_at)::bigint, source FROM ledger.journal"
            " WHERE type = 'source.heartbeat' ORDER BY seq"
        ).fetchall()
    assert [tuple(row) for row in rows] == [
        (NOW_S, "slurm/alpha"), (NOW_S + HEARTBEAT_S, "slurm/alpha"),
    ]  # fmt: skip


def test_a_record_that_cannot_be_read_is_one_dead_letter_however_often_it_is_seen(world: World) -> None:
    collector = world.collector()
    for elapsed in (60, 120):
        broken = job(1, NOW_S - 600, state="FROZEN")
        broken["time"]["elapsed"] = elapsed
        world.accounting([job(2, NOW_S - 50, NOW_S - 20), broken])
        polled = collector.poll()
        world.pass_(60)
        assert polled.reports["slurm-sacct-json"].dead_lettered == 1

    assert world.count("dead_letters") == 1
    assert world.held() == {"2": 30}


def test_a_second_collector_takes_over(world: World) -> None:
    first = world.collector()
    world.collector()

    with pytest.raises(Fenced):
        first.poll()


def test_through_a_broker_the_same_is_booked_and_known_from_then_on(world: World, broker: FileBroker) -> None:
    sink = BrokerSink(world.intake, broker)
    programs = Programs(world.folder / "answers", attempts=1)
    collector = SlurmCollector(
        world.intake, sink, programs, ImportOptions(), cluster=CLUSTER, since_s=SINCE_S
    )
    world.accounting([job(1, NOW_S - 600, NOW_S - 300), job(2, NOW_S - 100)])

    assert accepted(collector.poll())["slurm-sacct-json"] == 2
    assert world.held() == {}
    Worker(world.intake, broker, SCHEDULER_EVENTS).run(lambda _: None, once=True)

    assert world.held() == {"1": 300, "2": None}
    assert accepted(collector.poll())["slurm-sacct-json"] == 0


def test_the_cluster_is_what_slurm_calls_it(world: World) -> None:
    programs = Programs(world.folder / "answers", attempts=1)
    world.bin.put(
        "scontrol",
        "cat <<END\nConfiguration data\nAccountingStorageHost = x\nClusterName             = Alpha2\nEND",
    )
    assert cluster_of(programs) == "alpha2"

    world.bin.put("scontrol", "echo nothing")
    with pytest.raises(CommandFailed, match="names no cluster") as failed:
        cluster_of(programs)
    assert failed.value.hint == "name it: --cluster NAME"


def test_windows_cover_the_time_without_a_gap() -> None:
    day_s = 86_400
    assert list(windows(5, 5)) == []
    assert list(windows(5, 2 * day_s)) == [(5, day_s + 5), (day_s + 5, 2 * day_s)]
    assert instant(NOW_S).isoformat() == f"{local(NOW_S)}+00:00"
