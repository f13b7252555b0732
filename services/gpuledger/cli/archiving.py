"""``gpuledger archive``: usage and telemetry as Parquet, what it holds still, and the roll-up over it."""

import datetime as dt
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gpuledger.cli.options import Json
from gpuledger.cli.output import counted, note, print_json, print_table
from gpuledger.kernel.exits import FAILED, NOT_FOUND, TRY_AGAIN, USAGE

if TYPE_CHECKING:
    from gpuledger.settings import Settings

app = typer.Typer(help="Usage and telemetry as Parquet files.", no_args_is_help=True)

Cluster = Annotated[str | None, typer.Option("--cluster", help="One cluster; all unless given.")]
First = Annotated[str | None, typer.Option("--from", help="First UTC day (2026-11-01).")]
End = Annotated[str | None, typer.Option("--to", help="The UTC day after the last one.")]

SHOWN_MAX = 20


@app.command("write")
def write(*, cluster: Cluster = None, from_: First = None, to: End = None, as_json: Json = False) -> None:
    """Write the days that are over since, and those that late facts touch; or the days that are named."""
    from gpuledger import settings
    from gpuledger.database.opening import open_database

    config = settings.load()
    with open_database(config) as engine:
        url = engine.url.render_as_string(hide_password=False)
        _, document = run(config, "write", _options(cluster=cluster, from_=from_, to=to), url)
    if as_json:
        print_json(document)
        return
    for each in document["clusters"]:
        size = sum(each["bytes"].values())
        print(
            f"{each['cluster']}: {counted(each['days'], 'day')}, {each['files_written']} files written"
            f" ({sum(each['rows'].values()):,} rows, {size:,} bytes), {each['files_unchanged']} unchanged"
        )
    note(f"  {document['archive']}")


@app.command("verify")
def verify(*, cluster: Cluster = None, from_: First = None, to: End = None, as_json: Json = False) -> None:
    """Read every file and compare its bytes, rows and sums with its manifest; status 3 names what does not hold."""
    from gpuledger import settings

    status, document = run(settings.load(), "verify", _options(cluster=cluster, from_=from_, to=to))
    if as_json:
        print_json(document)
    else:
        for finding in document["findings"]:
            print(f"{finding['file']}: {finding['problem']}")
            note(f"  hint: {finding['hint']}")
        print(
            f"{counted(document['files'], 'file')} hold ({sum(document['rows'].values()):,} rows,"
            f" {sum(document['bytes'].values()):,} bytes), {len(document['findings'])} do not"
        )
    if status:
        raise typer.Exit(status)


@app.command("rollup")
def rollup(
    *,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="The cluster; needed where the archive has several.")
    ] = None,
    from_: First = None,
    to: End = None,
    engine: Annotated[Literal["duckdb", "spark"], typer.Option("--engine", help="What computes.")] = "duckdb",
    rung: Annotated[
        Literal["gpu_util", "gr_engine_active", "sm_active", "tensor_active"],
        typer.Option("--rung", help="What utilisation is measured by."),
    ] = "gpu_util",
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Compare with the warehouse, hour by hour; status 3 if it differs."),
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Write the rows to this Parquet file.")] = None,
    as_json: Json = False,
) -> None:
    """Usage of accounts by the hour, and what was used of it, from the archive alone."""
    from gpuledger import settings
    from gpuledger.database.opening import open_database

    config = settings.load()
    arguments = _options(cluster=cluster, from_=from_, to=to, engine=engine, rung=rung, out=out)
    if compare:
        with open_database(config) as database:
            url = database.url.render_as_string(hide_password=False)
            status, document = run(config, "rollup", [*arguments, "--compare"], url)
    else:
        status, document = run(config, "rollup", arguments)
    print_json(document) if as_json else _show(document)
    if status:
        raise typer.Exit(status)


def _options(**given: object) -> list[str]:
    """Return options for the process.

    Raises:
        Refused: When a day is none.
    """
    from gpuledger.kernel.errors import Refused

    for name in ("from_", "to"):
        try:
            if given[name] is not None:
                dt.date.fromisoformat(str(given[name]))
        except ValueError as error:
            raise Refused(
                f"--{name.rstrip('_')}: {given[name]!r} is not a day", hint="write 2026-11-01; days are UTC"
            ) from error
    return [
        part
        for name, value in given.items()
        if value is not None
        for part in (f"--{name.rstrip('_')}", str(value))
    ]


def run(
    config: "Settings", what: str, arguments: list[str], url: str | None = None
) -> tuple[int, dict[str, Any]]:
    """Run the archive as a process of its own, which has the heavy imports; return its exit status and its document.

    Raises:
        GpuledgerError: As the process says.
    """
    from gpuledger.kernel.errors import Refused

    if importlib.util.find_spec("pyarrow") is None:
        raise Refused("the archive needs Apache Arrow", hint="pip install 'gpuledger[pipelines]'")
    place = ["--archive", str(config.archive_folder), "--spark-master", config.spark_master]
    command = [sys.executable, "-m", "gpuledger_pipelines.archiving", what, *place, *arguments]
    env = {**os.environ, "DAGSTER_DISABLE_TELEMETRY": "1", **({"GPULEDGER_DATABASE_URL": url} if url else {})}
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, check=False)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        raise typer.Exit(done.returncode or FAILED) from None  # its messages stand on stderr
    if "error" in document:
        raise _error(document)
    return done.returncode, document


def _error(document: dict[str, Any]) -> Exception:
    """Return what the process raised."""
    from gpuledger.kernel.errors import Corrupt, NotFound, Refused, Unavailable

    kinds = {USAGE: Refused, NOT_FOUND: NotFound, TRY_AGAIN: Unavailable}
    return kinds.get(document["exit"], Corrupt)(document["error"], hint=document["hint"])


def _show(document: dict[str, Any]) -> None:
    from gpuledger.kernel.amounts import gpu_hours

    print(
        f"{document['cluster']}: {document['from']} to {document['to']}, {document['row_count']:,} rows by"
        f" {document['engine']}, as known at row {document['known_seq']:,}"
    )
    sums: dict[tuple[str, str], list[int]] = {}
    for row in document.get("rows", ()):
        found = sums.setdefault((row["account"], row["class"]), [0, 0, 0])
        for n, name in enumerate(("gpu_ms", "sampled_gpu_ms", "used_gpu_ms")):
            found[n] += row[name]
    if sums:
        print_table(
            ["account", "class", ">GPU-hours", ">sampled", f">used ({document['rung']})"],
            [
                (*whose, *(f"{gpu_hours(amount):,}" for amount in amounts))
                for whose, amounts in sorted(sums.items())
            ],
        )
    if "difference_count" in document:
        for each in document["differences"][:SHOWN_MAX]:
            told = f"archive {each['archive']}, warehouse {each['warehouse']}"
            print(f"{each['hour_at']} {each['account']} {each['class']}: {told}")
        print(f"{counted(document['difference_count'], 'difference')} from the warehouse")
        if document["difference_count"]:
            note(
                "  hint: gpuledger rollup and gpuledger archive write bring both up to what the book says now"
            )
