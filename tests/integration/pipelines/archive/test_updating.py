"""The archive follows the book: days once they are over, and those that late facts touch, and no others."""

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.integration.ledger.books import (
    CLUSTER,
    Ledger,
    at,
    ended,
    registered,
    run_of,
    started,
    submitted,
    told,
)
from tests.integration.pipelines.rows import DAY_S, HOUR_S

from gpuledger.kernel.errors import Conflict, Corrupt, NotFound, Refused, Unavailable
from gpuledger.ledger.sealing import seal_event, sealed
from gpuledger_pipelines.archive.layout import DATA, known_file, places
from gpuledger_pipelines.defs.archive import updating
from gpuledger_pipelines.defs.archive.updating import update, write_days

START = dt.date(2026, 11, 1)
START_S = at("2026-11-01T00:00:00Z")
DAYS = 6
NOW_S = START_S + DAYS * DAY_S


def day(n: float) -> int:
    """The second at which so many days have passed."""
    return START_S + int(n * DAY_S)


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """Six days: a run each day at ten, and one that is still open."""
    ledger = Ledger(database_url)
    ledger.append(told(day(0), registered("h1", 8)))
    for n in range(DAYS):
        ledger.append(*run_of(day(n) + 10 * HOUR_S, day(n) + 11 * HOUR_S, f"w{n}"))
    ledger.append(told(day(2.5), submitted("long")), told(day(2.5), started("long", gpus_milli=4000)))
    yield ledger
    ledger.engine.dispose()


def files(root: Path) -> dict[tuple[str, int], tuple[int, bytes]]:
    """Every file by dataset and day: its inode, and what it holds."""
    found = {}
    for place in places(root, CLUSTER):
        path = place.folder(root) / DATA
        found[place.dataset, (place.day - START).days] = (path.stat().st_ino, path.read_bytes())
    return found


def changed(root: Path, before: dict[tuple[str, int], tuple[int, bytes]]) -> set[tuple[str, int]]:
    return {key for key, file in files(root).items() if before.get(key) != file}


def test_at_first_every_day_that_is_over_is_written(ledger: Ledger, root: Path) -> None:
    done = update(ledger.engine, root, CLUSTER, NOW_S - 1)
    assert (done.days, done.files_written, done.files_unchanged) == (5, 10, 0)
    assert done.changed == [START + dt.timedelta(days=n) for n in range(5)]
    assert set(files(root)) == {(name, n) for name in ("usage", "telemetry") for n in range(5)}
    assert done.rows == {"usage": 5 + 3, "telemetry": 0}
    assert done.known_seq == ledger.rows("SELECT last_seq FROM ledger.books WHERE book = 'alpha'")[0][0]


def test_a_day_that_is_over_since_is_added(ledger: Ledger, root: Path) -> None:
    update(ledger.engine, root, CLUSTER, day(5))
    before = files(root)
    done = update(ledger.engine, root, CLUSTER, NOW_S)
    assert done.days == 1
    assert changed(root, before) == {("usage", 5), ("telemetry", 5)}
    assert update(ledger.engine, root, CLUSTER, NOW_S).days == 0


@pytest.mark.parametrize(
    ("late", "touched"),
    [
        pytest.param(lambda: run_of(day(1.5), day(1.6), "late"), {1}, id="a run"),
        pytest.param(lambda: run_of(day(0.9), day(2.1), "late"), {0, 1, 2}, id="a run over two midnights"),
        pytest.param(lambda: [told(day(4.5), ended("long"))], {4, 5}, id="the end of an open run"),
        pytest.param(
            lambda: run_of(day(1) + 10 * HOUR_S, day(1) + 11 * HOUR_S, "w1"), set(), id="a fact told again"
        ),
    ],
)
def test_a_late_fact_rewrites_the_files_of_its_days_alone(
    ledger: Ledger, root: Path, late: object, touched: set[int]
) -> None:
    update(ledger.engine, root, CLUSTER, NOW_S)
    before, whole = files(root), root.with_name("whole")
    ledger.append(*late())  # type: ignore[operator]
    update(ledger.engine, root, CLUSTER, NOW_S)
    assert changed(root, before) == {("usage", n) for n in touched}
    write_days(ledger.engine, whole, CLUSTER, START, START + dt.timedelta(days=DAYS), NOW_S)
    contents = [{key: content for key, (_, content) in files(each).items()} for each in (root, whole)]
    assert contents[0] == contents[1]


def test_samples_that_come_late_rewrite_their_day(ledger: Ledger, root: Path) -> None:
    update(ledger.engine, root, CLUSTER, NOW_S)
    before = files(root)
    with ledger.engine.begin() as connection:
        connection.execute(
            sa.text(
                "INSERT INTO telemetry.buckets VALUES"
                " ('alpha', to_timestamp(:at), 'g', 'long', 'r1', 'gpu_util', 300000, 300000)"
            ),
            {"at": day(3.5)},
        )
    end_s = day(3.5) + HOUR_S
    with ledger.engine.connect() as connection:
        fact = sealed(connection, CLUSTER, end_s)  # type: ignore[arg-type]
    assert fact is not None
    ledger.append(seal_event(fact, end_s))
    update(ledger.engine, root, CLUSTER, NOW_S)
    assert changed(root, before) == {("telemetry", 3)}


def test_a_trace_that_is_over_has_no_days_since(ledger: Ledger, root: Path) -> None:
    """A year goes by without a fact; then one comes, and the days in between are there too."""
    ledger.append(told(day(5.5), ended("long")))
    assert update(ledger.engine, root, CLUSTER, NOW_S + 365 * DAY_S).days == DAYS
    assert update(ledger.engine, root, CLUSTER, NOW_S + 366 * DAY_S).days == 0
    ledger.append(*run_of(day(8.5), day(8.6), "later"))
    assert update(ledger.engine, root, CLUSTER, NOW_S + 367 * DAY_S).days == 3
    assert {n for _, n in files(root)} == set(range(9))


def test_named_days_are_written_whatever_is_known_of_them(ledger: Ledger, root: Path) -> None:
    first = START + dt.timedelta(days=1)
    done = write_days(ledger.engine, root, CLUSTER, first, first + dt.timedelta(days=2), NOW_S)
    assert (done.days, done.known_seq) == (2, None)
    assert {n for _, n in files(root)} == {1, 2}
    assert not known_file(root, CLUSTER).exists()


def test_days_that_cannot_be_meant_are_refused(ledger: Ledger, root: Path) -> None:
    today = START + dt.timedelta(days=DAYS)
    with pytest.raises(Refused, match="2026-11-07 is not over"):
        write_days(ledger.engine, root, CLUSTER, today, today + dt.timedelta(days=1), NOW_S + DAY_S - 1)
    with pytest.raises(Refused, match="no day lies in"):
        write_days(ledger.engine, root, CLUSTER, START, START, NOW_S)
    for call in (
        lambda: write_days(ledger.engine, root, "nowhere", START, today, NOW_S),
        lambda: update(ledger.engine, root, "nowhere", NOW_S),
    ):
        with pytest.raises(NotFound, match="nowhere") as error:
            call()
        assert "alpha" in error.value.hint
    assert not root.exists()


def test_what_was_stopped_is_gone_on_with(
    ledger: Ledger, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, calls = updating.write_day, []

    def stops(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 3:
            raise Unavailable("the database went away")
        return write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(updating, "write_day", stops)
    with pytest.raises(Unavailable):
        update(ledger.engine, root, CLUSTER, NOW_S)
    assert {n for _, n in files(root)} == {0, 1}
    assert not known_file(root, CLUSTER).exists()
    done = update(ledger.engine, root, CLUSTER, NOW_S)
    assert (done.days, done.files_unchanged, done.files_written) == (6, 4, 8)


def test_a_second_writer_of_the_cluster_waits(
    ledger: Ledger, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updating, "PATIENCE_S", 1)
    with (
        updating.alone(ledger.engine, CLUSTER),
        pytest.raises(Conflict, match="another writer of the archive of alpha"),
    ):
        update(ledger.engine, root, CLUSTER, NOW_S)


def test_a_mark_that_says_nothing_is_named(ledger: Ledger, root: Path) -> None:
    update(ledger.engine, root, CLUSTER, NOW_S)
    path = known_file(root, CLUSTER)
    assert json.loads(path.read_bytes())["until_s"] == NOW_S
    path.write_text("{}")
    with pytest.raises(Corrupt, match=str(path)):
        update(ledger.engine, root, CLUSTER, NOW_S)
    path.unlink()
    before = files(root)
    assert update(ledger.engine, root, CLUSTER, NOW_S).files_unchanged == 2 * DAYS
    assert changed(root, before) == set()
