"""Law 6: every read takes an as-of. A new one without it fails here until it has it, or a reason on the page."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from gpuledger.api.app import create_app
from gpuledger.cli.app import app
from gpuledger.cli.options import AsOf
from gpuledger.client.asking import Asked
from gpuledger.client.ledger import Ledger
from gpuledger.database.engine import make_engine
from gpuledger.kernel.clock import SystemClock

CHANGES = {
    "admit", "agent nvml", "archive write",
    "audit export-heads", "backup", "budget adjust", "budget apply", "budget grant", "budget transfer",
    "close reopen", "close run", "collect kubernetes", "collect slurm", "collect slurm-jobcomp", "cycle", "db upgrade",
    "demo", "dlq discard", "dlq retry", "enforce kai", "enforce kueue", "enforce slurm", "import", "incident credit",
    "incident reverse", "ingest", "inventory apply", "login-files", "mapping apply", "notify run", "notify test",
    "period open", "policy run", "policy-data apply", "proposal approve", "proposal comment", "proposal make",
    "proposal reject", "proposal withdraw", "rebuild", "reconcile slurm", "restore", "rollup", "serve", "tick",
    "token create", "token revoke", "token rotate", "topics create", "user erase",
}  # fmt: skip
"""Commands that book, write or serve something; a dry run of one shows what it would do now."""
OF_CLIENT = {"admit", "divide", "grant", "post_events", "propose", "say", "transfer"}
"""What changes something through the client, or asks about what the caller made up."""
HELP = str(AsOf.__metadata__[0].help)  # type: ignore[attr-defined]


def _options() -> Iterator[tuple[str, list[TyperOption]]]:
    """Yield each command with its options."""
    waiting: list[tuple[str, object]] = [("", get_command(app))]
    while waiting:
        name, found = waiting.pop()
        if isinstance(found, TyperGroup):
            waiting += [(f"{name} {below}".strip(), command) for below, command in found.commands.items()]
        elif isinstance(found, TyperCommand):
            yield name, [parameter for parameter in found.params if isinstance(parameter, TyperOption)]


def _other_reads(repository: Path, page: str) -> dict[str, str]:
    """Return what a page's table of reads of another kind holds: command or path -> its reason."""
    _, _, section = (repository / page).read_text().partition("| takes no as-of |")
    return dict(re.findall(r"^\| `([^`]+)` \| (.+) \|$", section.partition("\n\n")[0], re.MULTILINE))


def test_every_command_that_reads_takes_as_of_or_says_why_not(repository: Path) -> None:
    every = {name: [flag for option in options for flag in option.opts] for name, options in _options()}
    taking = {name for name, flags in every.items() if "--as-of" in flags}
    other = _other_reads(repository, "docs/cli.md")
    assert every.keys() - taking - CHANGES == other.keys(), (
        "give it AsOf of cli.options, or a row in docs/cli.md"
    )
    assert not taking & CHANGES
    assert every.keys() >= CHANGES
    assert all(len(reason.split()) > 4 for reason in other.values())


def test_it_is_one_option_everywhere() -> None:
    """The recorded time of ``movements`` is the second of two, and has two names."""
    texts = {
        name: option.help for name, options in _options() for option in options if "--as-of" in option.opts
    }
    assert {text for name, text in texts.items() if name != "movements"} == {HELP}


def test_every_path_that_reads_takes_as_of_or_says_why_not(repository: Path) -> None:
    api = create_app(make_engine("postgresql+psycopg://nobody@127.0.0.1:1/nothing"), SystemClock())
    reads = {
        path: methods["get"]
        for path, methods in api.openapi()["paths"].items()
        if path.startswith("/v1/") and "get" in methods
    }
    assert reads
    without = [path for path, read in reads.items() if _as_of(read) is None]
    assert set(without) == _other_reads(repository, "docs/api.md").keys(), (
        "give it AsOf of api.parameters, or a row in docs/api.md"
    )
    assert len({str(found) for read in reads.values() if (found := _as_of(read))}) == 1, (
        "one parameter, described alike everywhere"
    )


def _as_of(operation: dict[str, Any]) -> dict[str, Any] | None:
    return next((p for p in operation.get("parameters", ()) if p["name"] == "as_of"), None)


def test_every_question_of_the_client_takes_as_of() -> None:
    questions = {
        name: inspect.signature(method) for name, method in vars(Ledger).items() if isinstance(method, Asked)
    }
    assert questions
    without = {name for name, signature in questions.items() if "as_of" not in signature.parameters}
    assert without == {"me", "tokens", *OF_CLIENT}
