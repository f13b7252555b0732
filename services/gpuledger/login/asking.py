"""What the commands on a login node have in common: flags, whom they ask, and how they end."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gpuledger.kernel.errors import GpuledgerError, NotFound, Refused
from gpuledger.login.columns import Style

if TYPE_CHECKING:
    from gpuledger.client import LedgerClient

INTERRUPTED = 130


def parser(prog: str, description: str) -> argparse.ArgumentParser:
    """Return a parser with the flags that every command has."""
    from importlib.metadata import version

    made = argparse.ArgumentParser(
        prog=prog,
        description=description,
        allow_abbrev=False,
        epilog="The ledger API is asked at GPULEDGER_API_URL, with the token in the file GPULEDGER_API_TOKEN_FILE"
        " where one is needed.",
    )
    made.add_argument("-V", "--version", action="version", version=f"gpuledger {version('gpuledger')}")
    made.add_argument(
        "-M", "--clusters", metavar="NAME", dest="cluster", help="the cluster, where there are several"
    )
    made.add_argument("--json", action="store_true", help="print one JSON document, amounts in whole gpu_ms")
    return made


def add_table_flags(made: argparse.ArgumentParser) -> None:
    """Add the flags of Slurm's tables to a parser."""
    made.add_argument(
        "-A", "--accounts", metavar="LIST", help="these accounts, and what is below them; commas between"
    )
    made.add_argument("-l", "--long", action="store_true", help="more fields")
    made.add_argument("-n", "--noheader", action="store_true", help="no header")
    made.add_argument("-p", "--parsable", action="store_true", help="'|' between fields, and at the end")
    made.add_argument("-P", "--parsable2", action="store_true", help="'|' between fields, none at the end")
    made.add_argument("-o", "--format", metavar="FIELDS", help="these fields, such as Account%%30,RawShares")
    made.add_argument("-e", "--helpformat", action="store_true", help="list the fields, and end")


def style_of(options: argparse.Namespace) -> Style:
    """Return how rows are printed."""
    if options.parsable2:
        return Style.BARS
    return Style.BARS_CLOSED if options.parsable else Style.ALIGNED


def names_in(text: str | None) -> tuple[str, ...]:
    """Return the names of a list with commas between."""
    return tuple(filter(None, (each.strip() for each in (text or "").split(","))))


def is_within(account: str, kept: Sequence[str]) -> bool:
    """Say whether an account is one of those kept, or below one of them; all are where none is named."""
    return not kept or any(account == each or account.startswith(each + "/") for each in kept)


def open_client() -> "LedgerClient":
    """Return a client of the API that the settings name, with the token that they name.

    Raises:
        Refused: When the settings are not valid, or the file of the token cannot be read.
    """
    from gpuledger import settings
    from gpuledger.client import LedgerClient
    from gpuledger.client.shown import token_in

    config = settings.load()
    return LedgerClient(config.api_url, token_in(config.api_token_file))


def cluster_of(client: "LedgerClient", asked: str | None) -> str:
    """Return the cluster that is meant: the one named, else the only one.

    Raises:
        Refused: When there are several and none was named.
        NotFound: When there is none.
    """
    if asked is not None:
        return asked
    names = [each.cluster for each in client.clusters().clusters]
    if not names:
        raise NotFound("the ledger knows no cluster", hint="gpuledger import, collect or ingest fill it")
    if len(names) > 1:
        raise Refused(f"there are {len(names)} clusters", hint=f"name one with -M: {', '.join(names)}")
    return names[0]


def print_document(document: Any) -> None:  # noqa: ANN401 - any JSON document
    """Print one JSON document."""
    print(json.dumps(document, ensure_ascii=False))


def end_of(prog: str, work: Callable[[], int], *, as_json: bool = False) -> int:
    """Do the work of a command and return its exit status; what goes wrong is told on stderr in a line or two."""
    from gpuledger.kernel.exits import exit_status

    try:
        status = work()
        sys.stdout.flush()
    except GpuledgerError as error:
        status = exit_status(error)
        if as_json:
            document = {"error": error.message, "hint": error.hint, "exit": status}
            print(json.dumps(document), file=sys.stderr)
        else:
            hint = f"\n  hint: {error.hint}" if error.hint else ""
            print(f"{prog}: {error.message}{hint}", file=sys.stderr)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:  # the reader went away (`| head`)
        _write_nothing_more()
        status = 0
    return status


def _write_nothing_more() -> None:
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
