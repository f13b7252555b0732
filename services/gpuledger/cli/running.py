"""``gpuledger rollup`` and ``serve``: what runs beside the command itself."""

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuledger.cli.options import Json
from gpuledger.cli.output import note, print_json
from gpuledger.kernel.exits import FAILED

if TYPE_CHECKING:
    from gpuledger.cli.children import Children
    from gpuledger.settings import Settings

API_PORT, DASHBOARD_PORT, DAGSTER_PORT = 8080, 8501, 3000
DASHBOARDS = f"http://127.0.0.1:{DASHBOARD_PORT}/"
"""Where the pages are, unless the port is taken."""

_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - only compared with
"""An address that stands for all of its kind -> the one of them at which this machine reaches itself."""


def pipeline_env(config: "Settings", url: str) -> dict[str, str]:
    """Return the environment that the pipelines and their UI need."""
    folder = config.home / "dagster"
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "GPULEDGER_DATABASE_URL": url,
        "DAGSTER_HOME": str(folder),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "GX_ANALYTICS_ENABLED": "false",
    }


def run_rollup(config: "Settings", url: str, arguments: list[str]) -> tuple[int, dict[str, Any] | None]:
    """Run the pipelines as a process of their own; return its exit status and its summary.

    The product never imports its pipelines: they are an outer room with heavy imports.
    """
    command = [sys.executable, "-m", "gpuledger_pipelines.rollup", "--json", *arguments]
    done = subprocess.run(
        command, env={**os.environ, **pipeline_env(config, url)}, stdout=subprocess.PIPE, check=False
    )
    try:
        summary = json.loads(done.stdout)
    except ValueError:
        summary = None
    return done.returncode, summary


def rollup(
    cluster: Annotated[
        list[str] | None, typer.Option("--cluster", help="A cluster; repeat for more; all unless given.")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="First day (2017-10-01); the first with data unless given.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", help="Day after the last; the last with data unless given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Roll the ledger up into the warehouse through Dagster, every table gated by its checks."""
    from gpuledger import settings
    from gpuledger.database.opening import open_database

    config = settings.load()
    arguments = [part for name in cluster or [] for part in ("--cluster", name)]
    arguments += ["--from", from_] if from_ else []
    arguments += ["--to", to] if to else []
    with open_database(config) as engine:
        status, summary = run_rollup(config, engine.url.render_as_string(hide_password=False), arguments)
    if summary is not None:
        print_json(summary) if as_json else show_rollup(summary)
    if status:
        raise typer.Exit(status)


def show_rollup(summary: dict[str, Any]) -> None:
    """Print what a roll-up did, a line per cluster."""
    for c in summary["clusters"]:
        rows = sum(c["rows"].values())
        print(
            f"{c['cluster']}: {c['from']} to {c['to']}, {rows:,} rows, {c['checks_passed']} gates passed,"
            f" {c['checks_failed']} failed"
        )
    if summary.get("data_docs"):
        print(f"what gates found: {summary['data_docs']}")


def serve(
    port: Annotated[
        int, typer.Option("--port", help="The API's port; the next free one when busy.")
    ] = API_PORT,
    only_api: Annotated[bool, typer.Option("--only-api", help="No dashboards, no Dagster UI.")] = False,
    host: Annotated[
        str | None, typer.Option("--host", help="Address that the API binds; 127.0.0.1 unless given.")
    ] = None,
) -> None:
    """Serve the API until Ctrl-C, with it the dashboards and the Dagster UI, these on 127.0.0.1."""
    from gpuledger import settings
    from gpuledger.api.serve import HOST, check_address, tls_of
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.errors import Refused

    config, address = settings.load(), host or HOST
    check_address(address, config)
    tls_of(config)
    if config.api_tls_cert_file is not None and not (only_api or config.api_url.startswith("https://")):
        raise Refused(
            f"the dashboards would ask the API at {config.api_url}, and it speaks https alone",
            hint="set GPULEDGER_API_URL to the https address that its certificate names, or use --only-api",
        )
    with open_database(config) as engine:
        url = engine.url.render_as_string(hide_password=False)
        serve_until_interrupted(config, url, host=address, port=port, only_api=only_api)


def serve_until_interrupted(
    config: "Settings", url: str, *, port: int, only_api: bool, host: str | None = None
) -> None:
    """Start the servers, print where they are, and wait.

    Raises:
        Unavailable: When one of them does not start.
    """
    from gpuledger.cli.children import HOST, Children, free_port

    # A shell that starts this in the background has it ignore Ctrl-C; a service manager sends SIGTERM.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with Children(config.home / "logs") as children:
        api_port, bound = free_port(port), host or HOST
        is_secured = config.api_tls_cert_file is not None
        api = place_of(bound, api_port, scheme="https" if is_secured else "http")
        program = (
            "import os, sys; from gpuledger.api.serve import run;"
            " run(os.environ['GPULEDGER_DATABASE_URL'], sys.argv[1], int(sys.argv[2]))"
        )
        children.start(
            "api", [sys.executable, "-c", program, bound, str(api_port)], {"GPULEDGER_DATABASE_URL": url}
        )
        places = [("API", f"{api}/docs")]
        if not only_api:
            places += _start_pages(children, config, url, config.api_url if is_secured else api)
        children.wait_for("api", f"{api}/healthz", 60)
        for name, place in places:
            print(f"{name:12} {place}", flush=True)
        for line in people_lines(config, dict(places)["Dashboards"]) if not only_api else ():
            print(line, flush=True)
        note("Ctrl-C stops everything")
        while (ended := children.first_ended()) is None:
            time.sleep(0.5)
    note(f"gpuledger: {ended} ended by itself; read {config.home / 'logs' / (ended + '.log')}")
    raise typer.Exit(FAILED)


def people_lines(config: "Settings", dashboards: str) -> list[str]:
    """Return who one can look at the pages as, each with a link and what to try; nobody outside the demo's folder.

    Args:
        config: Where the folder is.
        dashboards: The address of the pages, which ends with a slash.
    """
    from gpuledger.demo import people

    lines = []
    for person in people.kept(config.home / people.FILE):
        lines += [f"{person.name}, {person.about}", f"    {dashboards}{person.page}", f"    {person.attempt}"]
    return ["", "Look at the institute as:", *lines, ""] if lines else []


def place_of(host: str, port: int, *, scheme: str = "http") -> str:
    """Return where this machine reaches a server that is bound to an address."""
    reached = _EVERY_ADDRESS.get(host, host)
    return f"{scheme}://[{reached}]:{port}" if ":" in reached else f"{scheme}://{reached}:{port}"


def _start_pages(children: "Children", config: "Settings", url: str, api: str) -> list[tuple[str, str]]:
    from gpuledger.cli.children import HOST, free_port
    from gpuledger.demo import people

    folk = config.home / people.FILE
    dashboards, dagster = free_port(DASHBOARD_PORT), free_port(DAGSTER_PORT)
    children.start(
        "dashboards",
        [sys.executable, "-m", "gpuledger_dashboards.run", "--port", str(dashboards), "--api", api],
        {"GPULEDGER_API_URL": api, **({"GPULEDGER_DEMO_PEOPLE": str(folk)} if folk.exists() else {})},
    )
    children.start(
        "dagster",
        [sys.executable, "-m", "gpuledger_pipelines.ui", "--port", str(dagster)],
        pipeline_env(config, url),
        cwd=config.home,
    )  # fmt: skip
    children.wait_for("dashboards", f"http://{HOST}:{dashboards}/_stcore/health", 60)
    children.wait_for("dagster", f"http://{HOST}:{dagster}/server_info", 120)
    return [("Dashboards", f"http://{HOST}:{dashboards}/"), ("Dagster", f"http://{HOST}:{dagster}/")]
