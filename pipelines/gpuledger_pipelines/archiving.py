"""Write, verify and roll up the archive: ``python -m gpuledger_pipelines.archiving``, for ``gpuledger archive``.

One JSON document on stdout, be it of an error (``error``, ``hint``, ``exit``); progress on stderr.

Exit status: 0 done, 1 failed, 2 bad usage, 3 a check found problems, 4 not found, 75 try again later.
"""

import argparse
import datetime as dt
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gpuledger.kernel.clock import Clock, SystemClock, instant, iso, seconds
from gpuledger.kernel.errors import GpuledgerError, NotFound, Refused, Unavailable
from gpuledger.kernel.exits import PROBLEMS, exit_status
from gpuledger_pipelines.archive.engines import Engine
from gpuledger_pipelines.archive.expression import RUNG
from gpuledger_pipelines.archive.layout import checked_root

if TYPE_CHECKING:
    import sqlalchemy as sa

    from gpuledger_pipelines.archive.rolling import Amounts, Days, Difference, Key

DONE = 0
SHOWN_MAX = 100
"""Differences that are listed; the count beside them is whole."""

Document = dict[str, Any]


def main(arguments: Sequence[str] | None = None, clock: Clock | None = None) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, format="%(message)s")
    logging.getLogger("gpuledger_pipelines.progress").setLevel(logging.INFO)
    does: Mapping[str, Callable[[argparse.Namespace, Clock], tuple[int, Document]]] = {
        "write": write,
        "verify": verify,
        "rollup": rollup,
    }
    try:
        options.archive = checked_root(options.archive)
        status, document = does[options.do](options, clock or SystemClock())
    except GpuledgerError as error:
        status = exit_status(error)
        document = {"error": error.message, "hint": error.hint, "exit": status}
    sys.stdout.write(msgspec.json.encode(document).decode() + "\n")
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpuledger archive", description=__doc__)
    parser.add_argument("do", choices=("write", "verify", "rollup"))
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument("--cluster")
    day = dt.date.fromisoformat
    parser.add_argument("--from", dest="first", type=day, metavar="YYYY-MM-DD")
    parser.add_argument("--to", dest="end", type=day, metavar="YYYY-MM-DD")
    parser.add_argument("--engine", type=Engine, choices=list(Engine), default=Engine.DUCKDB)
    parser.add_argument("--spark-master", default="local[*]")
    parser.add_argument("--rung", default=RUNG)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--out", type=Path)
    return parser


def write(options: argparse.Namespace, clock: Clock) -> tuple[int, Document]:
    """Bring the archive up to date, or write the days that are named.

    Raises:
        GpuledgerError: As ``updating``.
    """
    from gpuledger_pipelines.defs.archive import updating

    root, now_s = options.archive, seconds(clock.now())
    if (options.first is None) != (options.end is None):
        raise Refused(
            "--from and --to come together", hint="without both, what is new or was touched is written"
        )
    engine = _database()
    try:
        names = [options.cluster] if options.cluster else updating.known_clusters(engine)
        updates = [
            updating.update(engine, root, name, now_s)
            if options.first is None
            else updating.write_days(engine, root, name, options.first, options.end, now_s)
            for name in names
        ]
    finally:
        engine.dispose()
    return DONE, {"archive": str(root), "clusters": [update.as_json() for update in updates]}


def verify(options: argparse.Namespace, clock: Clock) -> tuple[int, Document]:
    """Read the archive and compare it with its manifests."""
    del clock  # a file is what it is at any time
    from gpuledger_pipelines.archive.verifying import verify as look

    found = look(options.archive, options.cluster, options.first, options.end)
    if not found.files and not found.findings:
        raise NotFound(
            f"the archive in {options.archive} has no such day", hint="gpuledger archive write fills it"
        )
    return DONE if found.ok else PROBLEMS, {"archive": str(options.archive), **found.as_json()}


def rollup(options: argparse.Namespace, clock: Clock) -> tuple[int, Document]:
    """Roll the archive of one cluster up, and compare it with the warehouse where that is asked for.

    Raises:
        GpuledgerError: As ``rolling`` and ``engines``.
    """
    del clock  # days of the archive are over
    from gpuledger_pipelines.archive import rolling
    from gpuledger_pipelines.archive.engines import connect

    if options.compare and options.rung != RUNG:
        raise Refused(f"the warehouse has no {options.rung}", hint=f"--compare goes with --rung {RUNG}")
    days = rolling.days_of(options.archive, _cluster(options), options.first, options.end)
    with connect(options.engine, options.spark_master) as engine:
        rows = rolling.roll_up(engine, days, options.rung)
    document = {
        "cluster": days.cluster,
        "from": days.first.isoformat(),
        "to": days.end.isoformat(),
        "engine": options.engine.value,
        "rung": options.rung,
        "known_seq": days.known_seq,
        "row_count": rows.num_rows,
    }
    found = rolling.by_key(rows)
    if options.out is None:
        document["rows"] = [_row(key, amounts) for key, amounts in found.items()]
    else:
        _export(options.out, rows)
        document["out"] = str(options.out)
    if not options.compare:
        return DONE, document
    different = _compared(days, found)
    document["difference_count"] = len(different)
    document["differences"] = [_difference(each) for each in different[:SHOWN_MAX]]
    return PROBLEMS if different else DONE, document


def _cluster(options: argparse.Namespace) -> str:
    from gpuledger_pipelines.archive import layout

    if options.cluster:
        return str(options.cluster)
    found = layout.clusters(options.archive)
    if len(found) != 1:
        raise Refused("--cluster: name one", hint=f"the archive has: {', '.join(found) or 'none yet'}")
    return found[0]


def _compared(days: "Days", found: "Mapping[Key, Amounts]") -> "list[Difference]":
    from gpuledger.database.engine import reading
    from gpuledger_pipelines.archive import rolling

    engine = _database()
    try:
        with reading(engine) as reader:
            return list(rolling.differences(found, rolling.warehouse_rows(reader, days)))
    finally:
        engine.dispose()


def _database() -> "sa.Engine":
    from gpuledger.database.engine import make_engine

    url = os.environ.get("GPULEDGER_DATABASE_URL")
    if not url:
        raise Refused("GPULEDGER_DATABASE_URL must be set", hint="gpuledger archive sets it")
    return make_engine(url)


def _row(key: "Key", amounts: "Amounts") -> Document:
    return {
        "hour_at": iso(instant(key.hour_s)),
        "account": key.account,
        "class": key.klass,
        **amounts._asdict(),
    }


def _difference(each: "Difference") -> Document:
    row: Document = {
        "hour_at": iso(instant(each.key.hour_s)),
        "account": each.key.account,
        "class": each.key.klass,
    }
    for name, amounts in (("archive", each.archive), ("warehouse", each.warehouse)):
        row[name] = None if amounts is None else amounts._asdict()
    return row


def _export(path: Path, rows: Any) -> None:  # noqa: ANN401 - Arrow has no types
    """Write the rows as Parquet.

    Raises:
        Unavailable: When they cannot be written.
    """
    import pyarrow.parquet as pq

    try:
        pq.write_table(rows, path, compression="zstd")
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be written: {error}", hint="check the folder and its space"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
