"""The ingest worker is killed at random points; the ledger comes out as if nothing had happened."""

import itertools
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from infra.kafka.nodes import Broker
from tests.chaos.publishing import forget_topics, publish, whole_traces
from tests.chaos.workers import Watch, ended, wait_for, worker
from tests.commands import traces as oracle
from tests.commands.fixtures import Ledger, running_home
from tests.commands.running import finish, kill

from gpuledger.database.engine import make_engine
from gpuledger.ingest.worker import BATCH_RECORDS
from gpuledger.streams.topics import SCHEDULER_EVENTS, TELEMETRY, Topic

pytestmark = [pytest.mark.durable_broker, pytest.mark.timeout(7200)]

KILLS: dict[str, dict[Topic, int]] = {
    "short": {SCHEDULER_EVENTS: 17, TELEMETRY: 3},
    "full": {SCHEDULER_EVENTS: 197, TELEMETRY: 3},
}
"""Telemetry is a batch or two: a worker that is not killed in them has read it all."""
SEED = 20_171_009


@dataclass(frozen=True)
class Outcome:
    """Two ledgers of the same traces: one fed through Kafka with murder, one from the files in peace."""

    attacked: Ledger
    clean: Ledger
    kills: dict[Topic, int]
    endings: list[int]
    positions: list[int]
    published: dict[Topic, int]
    philly: Path


@pytest.fixture(scope="module")
def outcome(
    apache_kafka: Broker, tmp_path_factory: pytest.TempPathFactory, test_form: str
) -> Iterator[Outcome]:
    folder = tmp_path_factory.mktemp("killed")
    traces = whole_traces(test_form, folder)
    forget_topics(apache_kafka.bootstrap)
    published = publish(apache_kafka.bootstrap, traces)
    # One server, held open: an embedded PostgreSQL stops with its last user.
    with running_home(folder / "home") as attacked:
        clean = database_beside(attacked)
        assert clean.fresh("db", "upgrade").status == 0
        for name, path in traces:
            clean.done("import", name, path)
        assert attacked.fresh("db", "upgrade").status == 0
        endings, positions = [], []
        for topic, kills in KILLS[test_form].items():
            for ending, position in _attack(attacked, apache_kafka.bootstrap, topic, kills, published[topic]):
                endings.append(ending)
                positions.append(position)
            last = finish(worker(attacked, apache_kafka.bootstrap, "--once", "--topic", topic))
            assert last.status == 0, last.err
        yield Outcome(attacked, clean, KILLS[test_form], endings, positions, published, traces[0][1])


def _attack(ledger: Ledger, bootstrap: str, topic: Topic, kills: int, end: int) -> Iterator[tuple[int, int]]:
    """Kill a worker in the batch of each of so many random points; yield how it ended and where it stood.

    Each point is drawn from a stretch of its own, so that they lie all over the stream.
    """
    chance = random.Random(SEED + kills)
    # The last batches are left to a worker that finishes.
    attacked = max(end - 4 * BATCH_RECORDS, end // 2)
    points = [chance.randrange(n * attacked // kills, (n + 1) * attacked // kills) for n in range(kills)]
    watch = Watch(ledger, topic)
    for point in points:
        epoch = watch.epoch
        with ended(worker(ledger, bootstrap, "--once", "--topic", topic)) as process:
            alive = wait_for(lambda: watch.epoch > epoch, process) and wait_for(  # noqa: B023 - called at once
                lambda: watch.position + BATCH_RECORDS > point,  # noqa: B023
                process,
            )
            if alive:
                _linger(watch, point, chance.uniform(0, 0.4))
            ran = kill(process)
        yield ran.status, watch.position


def _linger(watch: Watch, point: int, for_s: float) -> None:
    """Let the worker go on for a moment, but never so far that it could come to the end of the stream."""
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline and watch.position <= point + BATCH_RECORDS:
        time.sleep(0.01)


def test_so_many_workers_were_killed_all_over_the_stream(outcome: Outcome) -> None:
    assert outcome.endings == [-signal.SIGKILL] * sum(outcome.kills.values())
    scheduler = outcome.positions[: outcome.kills[SCHEDULER_EVENTS]]
    assert len(set(scheduler)) > 5, "at different places"
    assert all(a <= b for a, b in itertools.pairwise(scheduler)), "a position never goes back"


def test_every_record_was_read_once(outcome: Outcome) -> None:
    for topic, count in outcome.published.items():
        assert Watch(outcome.attacked, topic).position == count


def test_the_state_is_that_of_an_import_in_peace(outcome: Outcome) -> None:
    assert outcome.attacked.checked_digest() == outcome.clean.checked_digest()


def test_no_event_is_in_the_journal_twice(outcome: Outcome) -> None:
    twice = "SELECT count(*) FROM (SELECT 1 FROM ledger.journal GROUP BY book, source, event_id HAVING count(*) > 1)"
    assert outcome.attacked.rows(twice + " AS t") == [(0,)]
    counts = "SELECT book, type, count(*) FROM ledger.journal GROUP BY 1, 2 ORDER BY 1, 2"
    assert outcome.attacked.rows(counts) == outcome.clean.rows(counts)


def test_no_sample_was_counted_twice(outcome: Outcome) -> None:
    buckets = (
        "SELECT book, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms FROM telemetry.buckets"
        " ORDER BY 1, 2, 3, 4, 5, 6"
    )
    attacked = outcome.attacked.rows(buckets)
    assert len(attacked) > 10_000
    assert attacked == outcome.clean.rows(buckets)


def test_the_totals_are_those_of_the_files(outcome: Outcome) -> None:
    attacked = outcome.attacked
    for cluster, runs in (
        ("philly", oracle.philly(outcome.philly)),
        ("alex", oracle.alex()),
        ("openb", oracle.openb()),
    ):
        booked = {
            row["key"]: row["gpu_ms"] for row in attacked.usage("account", "--cluster", cluster)["rows"]
        }
        assert booked == {f"{cluster}/{key}": amount for key, amount in oracle.by_key(runs).items() if amount}
    assert attacked.usage("cluster", "--cluster", "openb")["total_gpu_hours"] == "51470.674"
    alex = attacked.usage("cluster", "--cluster", "alex")
    assert alex["total_gpu_hours"] == "3980.037"
    assert oracle.hours(alex["rows"][0]["used_gpu_ms"]) == "2859.882"


def test_importing_the_files_afterwards_adds_nothing(outcome: Outcome) -> None:
    heads = outcome.attacked.heads()

    report = outcome.attacked.done("import", "openb", oracle.DATA)

    assert (report["accepted"], report["repeated"]) == (0, 9365)
    assert outcome.attacked.heads() == heads


def database_beside(ledger: Ledger) -> Ledger:
    """Return an empty ledger on the same server, in a database of the same name with ``_clean`` behind it."""
    engine = make_engine(ledger.url)
    name = f"{engine.url.database}_clean"
    with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.exec_driver_sql(
            f"CREATE DATABASE {name} TEMPLATE template0 LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C'"
        )
    url = engine.url.set(database=name).render_as_string(hide_password=False)
    engine.dispose()
    return Ledger({**ledger.settings, "GPULEDGER_DATABASE_URL": url}, url)
