"""Roll the ledger up into the warehouse, now: ``python -m gpuledger_pipelines.rollup``.

One Dagster run per cluster, in this process, gates included; the runs are kept in ``DAGSTER_HOME`` and the
Dagster UI shows them. Progress goes to stderr, the summary to stdout.

Exit status: 0 done, 1 failed, 2 bad usage, 3 a gate found problems, 75 the database is not there now.
"""

import argparse
import datetime as dt
import json
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, SystemClock, seconds
from gpuledger.kernel.errors import GpuledgerError, Refused, Unavailable
from gpuledger.settings import load
from gpuledger_pipelines import home
from gpuledger_pipelines.data_docs.folder import DataDocs

if TYPE_CHECKING:
    import sqlalchemy as sa
    from dagster import DagsterInstance, ExecuteInProcessResult
    from dagster_shared.error import SerializableErrorInfo

DONE, FAILED, BAD_USAGE, FOUND_PROBLEMS, TRY_LATER = 0, 1, 2, 3, 75
_BY_WEIGHT = (DONE, FOUND_PROBLEMS, TRY_LATER, FAILED)
GATE_ERROR = "DagsterAssetCheckFailedError"


@dataclass(slots=True)
class Summary:
    """What a run over one cluster did.

    Args:
        cluster: The cluster.
        from_: The first day of the organisation's zone that was asked for.
        to: The day after the last one.
        rows: Rows written by table.
        checks_passed: Gates that hold.
        checks_failed: Gates that do not; what depends on them was not computed.
        findings: What the failed gates say.
        errors: What else went wrong.
        try_later: Whether the database went away.
        run_id: The run in Dagster.
    """

    cluster: str
    from_: str
    to: str
    rows: dict[str, int] = field(default_factory=dict)
    checks_passed: int = 0
    checks_failed: int = 0
    findings: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    try_later: bool = False
    run_id: str = ""

    def as_json(self) -> dict[str, object]:
        """Return the summary under the published keys."""
        data = asdict(self)
        return {key.rstrip("_"): value for key, value in data.items()}


@dataclass(frozen=True, slots=True)
class Asked:
    """The days of one cluster to restate, as the organisation counts them: ``[first, end)``."""

    cluster: str
    first: dt.date
    end: dt.date


def main(arguments: Sequence[str] | None = None, clock: Clock | None = None) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    _log_progress()
    try:
        summaries = roll_up(options, clock or SystemClock())
    except Unavailable as error:
        return _told(error, TRY_LATER)
    except Refused as error:
        return _told(error, BAD_USAGE)
    except GpuledgerError as error:
        return _told(error, FAILED)
    docs = DataDocs.of(load())
    document: dict[str, object] = {"clusters": [summary.as_json() for summary in summaries]}
    document["data_docs"] = docs.link(docs.index) if docs.index.exists() else None
    sys.stdout.write(json.dumps(document, indent=None if options.json else 2) + "\n")
    return max((status_of(summary) for summary in summaries), key=_BY_WEIGHT.index, default=DONE)


def status_of(summary: Summary) -> int:
    """Return the exit status that one cluster's roll-up deserves."""
    if summary.try_later:
        return TRY_LATER
    if summary.errors:
        return FAILED
    return FOUND_PROBLEMS if summary.checks_failed else DONE


def roll_up(options: argparse.Namespace, clock: Clock) -> list[Summary]:
    """Restate what the options ask for; return a summary per cluster.

    Raises:
        Refused: When the options contradict each other or the environment is not set.
        Unavailable: When the database cannot be reached.
    """
    url, dagster_home = (os.environ.get(name, "") for name in ("GPULEDGER_DATABASE_URL", home.VARIABLE))
    if not url or not dagster_home:
        raise Refused(
            f"GPULEDGER_DATABASE_URL and {home.VARIABLE} must be set",
            hint="gpuledger rollup sets both",
        )
    home.prepare(Path(dagster_home))
    now_s = seconds(clock.now())
    calendar, asked = _asked(url, options, now_s)
    if not asked:
        return []
    from dagster import DagsterInstance

    with DagsterInstance.get() as instance:
        return [_run(instance, calendar, each, now_s) for each in asked]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gpuledger_pipelines.rollup", description=__doc__)
    day = dt.date.fromisoformat
    parser.add_argument(
        "--from", dest="first", type=day, metavar="YYYY-MM-DD", help="first day, the organisation's"
    )
    parser.add_argument("--to", dest="end", type=day, metavar="YYYY-MM-DD", help="the day after the last one")
    parser.add_argument(
        "--cluster", action="append", metavar="NAME", help="may be repeated; all unless given"
    )
    parser.add_argument("--json", action="store_true", help="the summary on one line")
    return parser


def _asked(url: str, options: argparse.Namespace, now_s: int) -> tuple[Calendar, list[Asked]]:
    """Find out which days of which clusters to restate; without dates, all that have usage."""
    from gpuledger.database.engine import make_engine, reading
    from gpuledger_pipelines.resources import calendar

    engine = make_engine(url)
    try:
        with reading(engine) as reader:
            days = calendar(reader)
            spans = _spans(reader, now_s)
    finally:
        engine.dispose()
    if unknown := sorted(set(options.cluster or ()) - set(spans)):
        raise Refused(
            f"cluster {unknown[0]!r} has no usage", hint=f"clusters with usage: {', '.join(spans) or 'none'}"
        )
    asked = []
    for cluster in options.cluster or spans:
        from_s, to_s = spans[cluster]
        first = options.first or days.day_of(from_s)
        end = options.end or max(days.day_of(max(from_s, to_s - 1)), first) + dt.timedelta(days=1)
        if first >= end:
            raise Refused(f"no day lies in [{first}, {end})", hint="--to is the day after the last one")
        asked.append(Asked(cluster, first, end))
    return days, asked


def _spans(connection: "sa.Connection", now_s: int) -> dict[str, tuple[int, int]]:
    """Return from when to when each cluster has segments; open ones last until now."""
    import sqlalchemy as sa

    rows = connection.execute(
        sa.text(
            "SELECT cluster, floor(extract(epoch FROM min(from_at)))::bigint,"
            " max(least(coalesce(ceil(extract(epoch FROM until_at))::bigint, :now_s), :now_s))"
            " FROM ledger_read.segments WHERE from_at < to_timestamp(:now_s) GROUP BY 1 ORDER BY 1"
        ),
        {"now_s": now_s},
    )
    return {cluster: (from_s, to_s) for cluster, from_s, to_s in rows}


def _run(instance: "DagsterInstance", calendar: Calendar, asked: Asked, now_s: int) -> Summary:
    from gpuledger_pipelines.declaring import ONCE_TAG
    from gpuledger_pipelines.definitions import defs
    from gpuledger_pipelines.partitions import CLUSTERS, NOW_TAG, range_tags, utc_days
    from gpuledger_pipelines.schedules import ROLL_UP

    # The partitions are UTC days: those that the organisation's days touch.
    first, last = utc_days(calendar.day_start_s(asked.first), calendar.day_start_s(asked.end))
    last = min(last, utc_days(now_s, now_s + 1)[0])
    _say(f"{asked.cluster}: rolling up {asked.first} to {asked.end} ({(last - first).days + 1} days)")
    instance.add_dynamic_partitions(CLUSTERS, [asked.cluster])
    result = defs.resolve_job_def(ROLL_UP).execute_in_process(
        instance=instance,
        raise_on_error=False,
        tags={
            **range_tags(asked.cluster, first, last),
            NOW_TAG: str(now_s),
            ONCE_TAG: "yes",
            "gpuledger/cluster": asked.cluster,
        },
        # Dagster tells the console every event; the progress log has what a person waits for.
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
    )
    return _summary(asked, result)


def _summary(asked: Asked, result: "ExecuteInProcessResult") -> Summary:
    summary = Summary(asked.cluster, asked.first.isoformat(), asked.end.isoformat(), run_id=result.run_id)
    for event in result.get_asset_materialization_events():
        materialization = event.step_materialization_data.materialization
        summary.rows[materialization.asset_key.path[-1]] = int(str(materialization.metadata["rows"].value))
    for evaluation in result.get_asset_check_evaluations():
        if evaluation.passed:
            summary.checks_passed += 1
            continue
        summary.checks_failed += 1
        summary.findings.append(f"{evaluation.asset_key.path[-1]}: {evaluation.description}")
    for event in result.get_step_failure_events():
        error = event.step_failure_data.error
        if error is None or error.cls_name == GATE_ERROR:
            continue
        summary.errors.append(f"{event.step_key}: {(_root(error)).message.strip()}")
        summary.try_later |= _root(error).cls_name == Unavailable.__name__
    if not result.success and not summary.findings and not summary.errors:
        summary.errors.append(f"the run {result.run_id} failed; Dagster's log of it says why")
    return summary


def _root(error: "SerializableErrorInfo") -> "SerializableErrorInfo":
    """Return what the step raised; Dagster wraps it once."""
    return error.cause or error


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _told(error: GpuledgerError, status: int) -> int:
    _say(f"error: {error.message}" + (f"\nhint: {error.hint}" if error.hint else ""))
    return status


def _log_progress() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    progress = logging.getLogger("gpuledger_pipelines.progress")
    progress.handlers = [handler]
    progress.setLevel(logging.INFO)
    progress.propagate = False


if __name__ == "__main__":
    sys.exit(main())
