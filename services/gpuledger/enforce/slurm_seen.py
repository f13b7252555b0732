"""What Slurm says: the listings of its own commands, read into values. Pure.

All of them are asked for in columns, without a heading, in UTC: these forms have not changed in ten years, which
cannot be said of JSON.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import Refused

BAR = "|"
GPU_TRES = "gres/gpu"
NO_TIME = frozenset(("", "N/A", "Unknown", "NONE"))

ASSOCIATIONS = ("sacctmgr", "-nP", "show", "assoc", "format=Cluster,Account,User,Share,QOS,GrpTRESMins")
QOS = ("sacctmgr", "-nP", "show", "qos", "format=Name,Preempt,PreemptMode,UsageFactor")
USAGE = ("sshare", "-anP", "-o", "Account,User,GrpTRESRaw,TRESRunMins")
JOBS = ("squeue", "--all", "--noheader", "-o", "%i|%F|%T|%Q|%a|%V")
NODES = ("sinfo", "--all", "--noheader", "-N", "-o", "%N|%T|%E")
CONFIGURATION = ("scontrol", "show", "config")


class Association(NamedTuple):
    """An association: of an account, or of a user within one.

    Args:
        account: The account.
        user: The user; empty for the account itself.
        share: Its fair-share, as Slurm writes it.
        qos: The QOS that it may use.
        gpu_minutes: Its limit of GPU-minutes, as Slurm writes it; empty without one.
    """

    account: str
    user: str
    share: str
    qos: frozenset[str]
    gpu_minutes: str


class Quality(NamedTuple):
    """A QOS: whom it may preempt, how its jobs are preempted, and by what their use is multiplied."""

    name: str
    preempts: frozenset[str]
    preempt_mode: str
    usage_factor: str


class Usage(NamedTuple):
    """What an account's jobs used, decayed, and what its running jobs may still use; sshare counts whole minutes."""

    used_gpu_minutes: int
    running_gpu_minutes: int


class Job(NamedTuple):
    """A job in the queue.

    Args:
        name: Its number with its task or component, such as ``8841_7``.
        array: The number of its array, or its own.
        state: Its state, such as ``PENDING``.
        priority: Its priority.
        account: Its account.
        submitted_s: When this run of it was submitted; None where that is not said.
    """

    name: str
    array: str
    state: str
    priority: int
    account: str
    submitted_s: int | None


class Node(NamedTuple):
    """A node: its state, and why it is so."""

    name: str
    state: str
    reason: str


class Seen(NamedTuple):
    """Slurm at one moment."""

    cluster: str
    limits_are_safe: bool
    associations: Sequence[Association] = ()
    qos: Mapping[str, Quality] = {}
    usage: Mapping[str, Usage] = {}
    jobs: Sequence[Job] = ()
    nodes: Sequence[Node] = ()

    def account(self, name: str) -> Association | None:
        """Return the association of an account itself, or None."""
        return next((one for one in self.associations if one.account == name and not one.user), None)


def associations(printed: str, cluster: str) -> list[Association]:
    """Read what ``ASSOCIATIONS`` printed, of one cluster.

    Raises:
        Refused: When a line has other columns.
    """
    return [
        Association(account, user, share, _names(qos), tres(limit).get(GPU_TRES, ""))
        for of, account, user, share, qos, limit in _rows(printed, ASSOCIATIONS, 6)
        if of == cluster
    ]


def qualities(printed: str) -> dict[str, Quality]:
    """Read what ``QOS`` printed, by name.

    Raises:
        Refused: When a line has other columns.
    """
    return {
        name: Quality(name, _names(preempts), mode, factor)
        for name, preempts, mode, factor in _rows(printed, QOS, 4)
    }


def usages(printed: str) -> dict[str, Usage]:
    """Read what ``USAGE`` printed, by account.

    Raises:
        Refused: When a line has other columns.
    """
    return {
        account.strip(): Usage(
            int(tres(used).get(GPU_TRES, "0") or 0), int(tres(running).get(GPU_TRES, "0") or 0)
        )
        for account, user, used, running in _rows(printed, USAGE, 4)
        if not user.strip()
    }


def jobs(printed: str) -> list[Job]:
    """Read what ``JOBS`` printed.

    Raises:
        Refused: When a line has other columns, or a number is none.
    """
    return [
        Job(name, array, state, int(priority), account, _second(submitted))
        for name, array, state, priority, account, submitted in _rows(printed, JOBS, 6)
    ]


def nodes(printed: str) -> list[Node]:
    """Read what ``NODES`` printed: a line for each partition of a node, each node once.

    Raises:
        Refused: When a line has other columns.
    """
    return list(
        {name: Node(name, state, reason) for name, state, reason in _rows(printed, NODES, 3)}.values()
    )


def settings(printed: str) -> dict[str, str]:
    """Read what ``CONFIGURATION`` printed."""
    pairs = (line.partition("=") for line in printed.splitlines())
    return {key.strip(): value.strip() for key, sign, value in pairs if sign}


def tres(text: str) -> dict[str, str]:
    """Read a list such as ``cpu=4,gres/gpu=2``."""
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {name: value for name, _, value in pairs}


def _names(text: str) -> frozenset[str]:
    return frozenset(name for name in text.split(",") if name)


def _second(text: str) -> int | None:
    return None if text in NO_TIME else seconds(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC))


def _rows(printed: str, command: Sequence[str], columns: int) -> list[list[str]]:
    rows = [line.split(BAR, columns - 1) for line in printed.splitlines() if line]
    for row in rows:
        if len(row) != columns:
            raise Refused(
                f"{command[0]} printed {BAR.join(row)!r}, which is not {columns} columns",
                hint=f"run it by hand: {' '.join(command)}",
            )
    return rows
