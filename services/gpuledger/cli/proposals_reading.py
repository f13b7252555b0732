"""What ``gpuledger proposal make`` was told, as the proposal that it makes."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpuledger.cli.grants import read_gpu_hours
from gpuledger.cli.options import moment
from gpuledger.client import compared
from gpuledger.events import proposal
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuledger.kernel.calendar import Calendar


@dataclass(frozen=True, slots=True)
class Asked:
    """The options as they were written; their help says what each means."""

    shares: "Sequence[str]"
    grants: "Sequence[str]"
    transfers: "Sequence[str]"
    cluster: str | None
    period: str | None
    from_: str | None
    decide_by: str | None
    simulation: Path | None
    reason: str


def read(asked: Asked, name: str, by: str, calendar: "Calendar") -> proposal.Proposed:
    """Return the proposal that options ask for.

    Args:
        asked: The options.
        name: The proposal's name.
        by: Who proposes it.
        calendar: The organisation's days.

    Raises:
        Refused: When an option cannot be read.
    """
    effective_s = moment(asked.from_, "--from", calendar)
    due_s = moment(asked.decide_by, "--decide-by", calendar)
    return proposal.Proposed(
        proposal=name,
        cluster=asked.cluster,
        shares=[
            proposal.NewShare(account=who, share=_share(said))
            for who, said in _pairs("--share", asked.shares)
        ],
        grants=[
            proposal.NewGrant(account=who, period=_period(asked), gpu_ms=read_gpu_hours(said))
            for who, said in _pairs("--grant", asked.grants)
        ],
        transfers=[
            proposal.NewTransfer(account=giver, to=to, period=_period(asked), gpu_ms=read_gpu_hours(said))
            for who, said in _pairs("--transfer", asked.transfers)
            for giver, to in (_giver_and_receiver(who),)
        ],
        effective_at=None if effective_s is None else instant(effective_s),
        decide_by=None if due_s is None else instant(due_s),
        simulation=None if asked.simulation is None else simulated(asked.simulation),
        by=by,
        reason=asked.reason,
    )


def simulated(path: Path) -> proposal.Simulated:
    """Read what a comparison of two budgets printed.

    Raises:
        Refused: When the file is missing or is no such document.
    """
    try:
        return msgspec.convert(compared.read(path.read_bytes()), proposal.Simulated)
    except (OSError, Refused, msgspec.ValidationError) as error:
        raise Refused(
            f"--simulation: {path}: {error}", hint="gpuledger simulate compare SCENARIO A B --json > FILE"
        ) from error


def _pairs(option: str, said: "Sequence[str]") -> list[tuple[str, str]]:
    pairs = [one.rpartition("=") for one in said]
    if wrong := [one for one, (name, _, value) in zip(said, pairs, strict=True) if not name or not value]:
        raise Refused(
            f"{option}: {wrong[0]!r} is not of the form NAME=VALUE", hint=f"such as {option} org/vision=12"
        )
    return [(name, value) for name, _, value in pairs]


def _giver_and_receiver(text: str) -> tuple[str, str]:
    giver, _, to = text.partition(":")
    if not giver or not to:
        raise Refused(
            f"--transfer: {text!r} is not of the form FROM:TO",
            hint="such as --transfer org/vision:org/speech=12",
        )
    return giver, to


def _share(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise Refused(f"--share: {text!r} is no share", hint="write a whole number, 0 or more")
    return int(text)


def _period(asked: Asked) -> str:
    if asked.period is None:
        raise Refused("--period: GPU-time belongs to a budget period", hint="such as --period 2026-12")
    return asked.period
