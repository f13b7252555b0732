"""Each link of a real installation is broken in turn; the doctor names it, and changes nothing."""

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.integration.ledger.books import Ledger, registered, started, submitted, told

from gpuledger.doctor import examining
from gpuledger.doctor.examining import examine
from gpuledger.doctor.findings import Finding, Level
from gpuledger.kernel.clock import FixedClock, SystemClock, seconds
from gpuledger.kernel.errors import NotFound, Unavailable
from gpuledger.settings import Settings
from gpuledger.streams.topics import TOPICS, Described

Examine = Callable[..., dict[str, Finding]]


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """A cluster with a host, a run that is open since an hour ago, and a source that reports."""
    found = Ledger(database_url)
    found.clock = FixedClock(SystemClock().now())
    now_s = seconds(found.clock.now())
    found.append(
        told(now_s - 7200, registered("h1", 8)),
        told(now_s - 3600, submitted()),
        told(now_s - 3600, started()),
    )
    break_it(found, "INSERT INTO ledger.watermarks VALUES ('alpha', 'slurm/alpha', now())")
    break_it(found, "UPDATE ledger.books SET ticked_at = date_trunc('hour', now()) WHERE book = 'alpha'")
    yield found
    found.engine.dispose()


def break_it(ledger: Ledger, statement: str) -> None:
    """Change what no writer would, as the superuser of the test's database."""
    with ledger.engine.begin() as connection:
        connection.execute(sa.text(statement))


@pytest.fixture
def look(ledger: Ledger, tmp_path: Path) -> Examine:
    """Examine the ledger; what was found by link, the worst of each."""
    settings = Settings(
        home=tmp_path, database_url=ledger.url, api_url="http://127.0.0.1:9", kafka_bootstrap=None
    )

    def once(*, ahead_s: float = 0, **changed: object) -> dict[str, Finding]:
        clock = FixedClock(SystemClock().now() + dt.timedelta(seconds=ahead_s))
        worst: dict[str, Finding] = {}
        for each in examine(settings.model_copy(update=changed), clock):
            if each.link not in worst or worst[each.link].level is not Level.WRONG:
                worst[each.link] = each
        return worst

    return once


def wrong(found: dict[str, Finding]) -> list[str]:
    return [link for link, each in found.items() if each.level is Level.WRONG]


def test_an_installation_that_only_has_to_be_rolled_up(look: Examine) -> None:
    found = look()
    assert wrong(found) == ["roll-up"]
    assert found["api"].level is Level.NOTE
    assert found["recipients"].level is Level.NOTE
    assert found["broker"].level is Level.FINE


UNKNOWN = (
    "INSERT INTO telemetry.buckets (book, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms)"
    " VALUES ('alpha', date_trunc('hour', now()), 'GPU-1', '', 'job/77', 'gpu_util', 1, 1)"
)
LETTER = (
    "INSERT INTO ledger.dead_letters (stream, partition, position, place, context, raw, raw_digest, code, reason, hint,"
    " received_at) VALUES ('s', 0, 0, 'p', '{}', '', '', 'bad-time', 'r', 'h', now())"
)
BEHIND = (
    "INSERT INTO ledger.stream_offsets (consumer, stream, partition, position, epoch, end_position, seen_at)"
    " VALUES ('ingest', 'gpu.scheduler.events', 0, 1, 1, 9, now() - interval '1 hour')"
)


@pytest.mark.parametrize(
    ("broken", "link", "said"),
    [
        ("UPDATE ledger.watermarks SET told_until_at = now() - interval '2 hours'", "sources", "slurm/alpha"),
        ("UPDATE ledger.books SET ticked_at = NULL", "posting", "1 runs are open"),
        ("DELETE FROM ledger.hosts", "inventory", "alpha"),
        ("UPDATE ledger.segments SET account = 'unmapped/vision-x'", "owners", "vision-x"),
        (UNKNOWN, "telemetry", "job/77"),
        (LETTER, "dead letters", "1 bad-time"),
        (BEHIND, "ingest", "8 records wait on gpu.scheduler.events/0 of ingest"),
        ("ALTER TABLE ledger.journal DISABLE TRIGGER ALL", "guards", "journal"),
        ("UPDATE public.alembic_version SET version_num = '0001'", "schema", "at 0001"),
    ],
)
def test_a_broken_link_is_named_first(
    ledger: Ledger, look: Examine, broken: str, link: str, said: str
) -> None:
    break_it(ledger, broken)
    found = look()
    assert wrong(found)[0] == link
    assert said in found[link].what
    assert found[link].remedy or found[link].command


def test_clocks_that_disagree(look: Examine) -> None:
    found = look(ahead_s=120)
    assert wrong(found)[0] == "clocks"
    assert "behind this machine's" in found["clocks"].what


def test_a_database_that_is_away_hides_nothing_else(look: Examine) -> None:
    found = look(database_url="postgresql+psycopg://nobody@127.0.0.1:9/none")
    assert wrong(found) == ["database"]
    assert {"disk", "broker", "api"} <= found.keys()


def test_topics_that_are_missing_and_a_broker_that_is_away(
    look: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broker:
        def describe(self, topics: object) -> list[Described]:
            return [Described(topic) for topic in TOPICS]

    monkeypatch.setattr(examining, "open_broker", lambda _: Broker())
    assert "topics" in wrong(look(kafka_bootstrap="k:1"))

    class Gone:
        def describe(self, topics: object) -> list[Described]:
            raise Unavailable("Kafka at k:1 cannot be reached", hint="see whether it runs")

    monkeypatch.setattr(examining, "open_broker", lambda _: Gone())
    found = look(kafka_bootstrap="k:1")
    assert found["broker"].level is Level.WRONG
    assert found["broker"].remedy == "see whether it runs"


def test_a_file_of_recipients_that_is_not_there(look: Examine, tmp_path: Path) -> None:
    assert "notifications" in wrong(look(notifications=tmp_path / "gone.yaml"))


def test_a_cluster_that_there_is_not(ledger: Ledger, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, database_url=ledger.url, api_url="http://127.0.0.1:9")
    with pytest.raises(NotFound):
        list(examine(settings, SystemClock(), "nobody"))
    clusters = {each.cluster for each in examine(settings, SystemClock(), "alpha")}
    assert clusters == {None, "alpha"}


def test_where_there_is_no_ledger_none_is_made(tmp_path: Path) -> None:
    found = list(examine(Settings(home=tmp_path / "new", api_url="http://127.0.0.1:9"), SystemClock()))
    assert [(each.link, each.level) for each in found] == [("disk", Level.FINE), ("database", Level.NOTE)]
    assert not (tmp_path / "new").exists()
