"""Look at every link of an installation; what cannot be looked at is a finding of its own, and hides no other."""

import datetime as dt
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import sqlalchemy as sa

from gpuledger.client import LedgerClient
from gpuledger.database.engine import Reader, looking_up, make_engine, reading, writing
from gpuledger.database.opening import database_url, newest_revision, revision
from gpuledger.doctor import chain, installation
from gpuledger.doctor.chain import ClusterFacts, Overdue, Source
from gpuledger.doctor.findings import Finding, Level, fine
from gpuledger.doctor.installation import DatabaseFacts
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.ingest import dead_letters
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, instant, seconds
from gpuledger.kernel.errors import GpuledgerError, Unavailable
from gpuledger.ledger import guards, liveness, outbox, periods, policy_status, queries, remapping, watermarks
from gpuledger.notify import outbox as notices
from gpuledger.notify.recipients import load_recipients
from gpuledger.settings import Settings
from gpuledger.streams.opening import open_broker
from gpuledger.streams.topics import TOPICS
from gpuledger.warehouse import spans

_ROLES = ("gpuledger_owner", "gpuledger_writer", "gpuledger_reader")
_DAY, _WEEK = dt.timedelta(days=1), dt.timedelta(days=7)

Look = Callable[[], Iterable[Finding]]


def examine(settings: Settings, clock: Clock, cluster: str | None = None) -> Iterator[Finding]:
    """Yield what is found, link by link, from the disk to the pages.

    Args:
        settings: Where things are.
        clock: The present.
        cluster: The one cluster whose chain is looked at; all of them unless given.

    Raises:
        NotFound: When there is no such cluster.
    """
    yield from _look("disk", lambda: [_disk(settings.home)])
    if settings.database_url is None and not (settings.home / "postgres").exists():
        # Looking at the embedded database would make one.
        what = (
            f"there is no ledger in {settings.home} yet, and no database is named in GPULEDGER_DATABASE_URL"
        )
        yield Finding("database", Level.NOTE, what, command="gpuledger demo")
        return
    with _database(settings) as (engine, broken):
        if engine is None:
            yield from broken
        else:
            found = list(_look("database", lambda: _of_database(engine, clock)))
            yield from found
            if not any(each.level is Level.WRONG and each.link in ("database", "schema") for each in found):
                yield from _of_ledger(engine, settings, clock, cluster)
    yield from _look("broker", lambda: _of_broker(settings))
    yield from _look("notifications", lambda: _recipients(settings))
    yield _of_api(settings)


@contextmanager
def _database(settings: Settings) -> Iterator[tuple[sa.Engine | None, list[Finding]]]:
    """Yield an engine on the database in use, which looking does not migrate; or what keeps it from being used."""
    with ExitStack() as stack:
        try:
            engine = make_engine(stack.enter_context(database_url(settings)))
            stack.callback(engine.dispose)
            revision(engine)
        except GpuledgerError as error:
            yield None, [_of_error("database", error)]
            return
        yield engine, []


def _look(link: str, look: Look) -> Iterator[Finding]:
    try:
        yield from look()
    except GpuledgerError as error:
        yield _of_error(link, error)


def _of_error(link: str, error: GpuledgerError) -> Finding:
    return Finding(link, Level.WRONG, error.message, remedy=error.hint)


def _disk(home: Path) -> Finding:
    there = next(folder for folder in (home, *home.parents) if folder.exists())
    return installation.of_disk(str(home), shutil.disk_usage(there).free)


def _of_database(engine: sa.Engine, clock: Clock) -> list[Finding]:
    with looking_up(engine) as reader:
        version = int(reader.execute(sa.text("SHOW server_version_num")).scalar_one())
        theirs: dt.datetime = reader.execute(sa.text("SELECT clock_timestamp()")).scalar_one()
        skew_s = (theirs - clock.now()).total_seconds()
        names = sa.text("SELECT rolname FROM pg_roles WHERE rolname = ANY(:names)")
        there = set(reader.execute(names, {"names": list(_ROLES)}).scalars())
    at, wanted = revision(engine), newest_revision()
    unguarded: list[str] = []
    if at == wanted:
        with reading(engine) as snapshot:
            unguarded = guards.faults(snapshot)
    missing = [role for role in _ROLES if role not in there]
    return list(installation.of_database(DatabaseFacts(version, at, wanted, skew_s, missing, unguarded)))


def _of_ledger(engine: sa.Engine, settings: Settings, clock: Clock, cluster: str | None) -> Iterator[Finding]:
    now = clock.now()
    with reading(engine) as reader:
        queries.require_cluster(reader, cluster)
        calendar = queries.calendar(reader, settings.calendar)
        streams = queries.streams(reader)
        letters = dead_letters.waiting_by_code(reader)
        unpublished = outbox.unpublished(reader)
        facts = [each for each in _facts(reader, calendar, now, settings) if cluster in (None, each.cluster)]
    yield from installation.of_streams(streams, now)
    yield installation.of_letters(letters)
    yield installation.of_outbox(unpublished)
    if not facts:
        what = "the ledger holds no cluster yet"
        yield Finding("sources", Level.NOTE, what, command="gpuledger import SOURCE PATH")
    for each in facts:
        yield from chain.of_cluster(each, now)
    with writing(engine) as writer:  # the writer alone may read the outbox of notices
        given_up, due = notices.undelivered(writer, now - _WEEK, now)
    yield installation.of_notices(given_up, due)


def _facts(
    reader: Reader, calendar: Calendar, now: dt.datetime, settings: Settings
) -> Iterator[ClusterFacts]:
    ticks, runs, inventory = (
        queries.ticks(reader),
        liveness.open_runs(reader),
        liveness.with_inventory(reader),
    )
    work = liveness.with_work(reader)
    measured, unknown = liveness.measured_since(reader, now - _DAY), liveness.unknown_runs(reader, now - _DAY)
    rolled_up, seen = spans.spans(reader), spans.seen(reader)
    policy = {each.cluster: each for each in policy_status.read(reader)}
    sources: dict[str, list[Source]] = {}
    for mark in watermarks.watermarks(reader):
        sources.setdefault(mark.book, []).append(Source(mark.source, mark.told_until_at))
    overdue: dict[str, list[Overdue]] = {}
    for each in periods.periods(reader, None):
        _, end_s = calendar.period_bounds_s(each.period)
        since = instant(end_s) + dt.timedelta(hours=settings.close_grace_hours)
        if each.state in ("open", "closing") and since < now:
            overdue.setdefault(each.cluster, []).append(Overdue(each.period, each.state, since))
    foreign: dict[str, list[tuple[str, int]]] = {}
    for one in remapping.unmapped(reader, seconds(now)):
        foreign.setdefault(one.cluster, []).append((one.foreign, one.gpu_ms))
    for book in queries.book_heads(reader):
        name = book.book
        if name == ORG_BOOK:
            continue
        status, (seen_seq, seen_at) = policy.get(name), seen.get(name, (0, None))
        newest = status.newest if status is not None else None
        yield ClusterFacts(
            cluster=name,
            rows=book.rows,
            last_recorded_at=book.last_recorded_at,
            sources=sources.get(name, ()),
            ticked_at=instant(ticks[name]) if name in ticks else None,
            open_runs=runs.get(name, 0),
            has_inventory=name in inventory,
            has_work=name in work,
            unmapped=foreign.get(name, ()),
            unknown_runs=unknown.get(name, ()),
            has_samples=name in measured,
            rolled_up_to=rolled_up[name].to_at if name in rolled_up else None,
            unseen_rows=max(0, book.rows - seen_seq),
            seen_at=seen_at,
            leader=status.leader if status is not None else None,
            decided_at=newest.decided_at if newest is not None else None,
            overdue=overdue.get(name, ()),
        )


def _of_broker(settings: Settings) -> Iterator[Finding]:
    if settings.kafka_bootstrap is None:
        yield fine("broker", f"streams are files in {settings.home / 'streams'}")
        return
    described = open_broker(settings).describe(TOPICS)
    yield fine("broker", f"Kafka answers at {settings.kafka_bootstrap}")
    yield from installation.of_topics(described)


def _recipients(settings: Settings) -> Iterator[Finding]:
    found = load_recipients(settings)
    if found is None:
        what = "nobody is told anything: no file of recipients is named"
        yield Finding("recipients", Level.NOTE, what, remedy="name one in GPULEDGER_NOTIFICATIONS")
        return
    yield fine("recipients", f"{len(found.targets)} recipients")


def _of_api(settings: Settings) -> Finding:
    try:
        with LedgerClient(settings.api_url) as client:
            client.clusters()
    except Unavailable as error:
        return Finding("api", Level.NOTE, error.message, command="gpuledger serve")
    except GpuledgerError:
        pass  # it answers, if only to say that it does not know who asks
    return fine("api", f"the ledger API answers at {settings.api_url}")
