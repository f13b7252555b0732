"""``gpuledger doctor``: what is wrong with an installation, and what mends it."""

from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.cli.options import AnyCluster, Json
from gpuledger.cli.output import counted, print_json
from gpuledger.kernel.exits import PROBLEMS

if TYPE_CHECKING:
    from gpuledger.doctor.findings import Finding

_MARKS = {"fine": "ok", "note": "note", "wrong": "WRONG"}


def doctor(
    cluster: AnyCluster = None,
    *,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="LINK", help="This link alone; repeat for more.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Say what is fine, too.")] = False,
    as_json: Json = False,
) -> None:
    """Look at each link from the disk and the database to sources, books, roll-ups, policy and closes.

    Names the links that are broken, the first one first, and what mends each. It changes nothing.
    """
    from gpuledger import settings
    from gpuledger.doctor.examining import examine
    from gpuledger.doctor.findings import first_broken, is_broken
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.kernel.errors import Refused

    found: list[Finding] = []
    for finding in examine(settings.load(), SystemClock(), cluster):
        if only and finding.link not in only:
            continue
        found.append(finding)
        if not as_json and (everything or finding.level.value != "fine"):
            _show(finding)
    missing = set(only or ()) - {finding.link for finding in found}
    if missing:
        raise Refused(
            f"no such link was looked at: {', '.join(sorted(missing))}", hint="--all shows their names"
        )
    first = first_broken(found)
    if as_json:
        broken = None if first is None else first.as_json()
        print_json(
            {"ok": first is None, "first_broken": broken, "findings": [each.as_json() for each in found]}
        )
    else:
        print(_verdict(found, first))
    if is_broken(found):
        raise typer.Exit(PROBLEMS)


def _show(finding: "Finding") -> None:
    where = f"{finding.link} ({finding.cluster})" if finding.cluster else finding.link
    print(f"{_MARKS[finding.level.value]:5}  {where}: {finding.what}")
    if finding.remedy:
        print(f"       {finding.remedy}")
    if finding.command:
        print(f"       $ {finding.command}")


def _verdict(found: "list[Finding]", first: "Finding | None") -> str:
    looked = counted(len(found), "link")
    if first is None:
        return f"{looked} looked at: nothing is broken"
    wrong = sum(each.level.value == "wrong" for each in found)
    return f"{looked} looked at, {wrong} broken; begin with the first: {first.link}"
