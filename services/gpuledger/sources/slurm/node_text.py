"""Nodes of Slurm as text: blocks of ``scontrol show node``, and rows of ``sinfo`` with bars between the columns.

Times are local to whoever asked Slurm.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.files import path_text
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.slurm.hosts import hosts_of
from gpuledger.sources.slurm.listing import columns, open_listing, row
from gpuledger.sources.slurm.node_facts import Node, NodeForm, Picture
from gpuledger.sources.slurm.scontrol import NOTHING, read_blocks, text_of, words

KEY = "NodeName"
MARK = f"{KEY}=".encode()
_ALIVE = b"CPUAlloc="
"""Stands in every block of a listing, and in no configuration file, whose lines may begin as blocks do."""

_WANTED = (KEY, "Gres", "State", "CfgTRES", "BootTime", "LastBusyTime")
_REASON = re.compile(r"(?:^|\s)Reason=(.*?)\s*(?:\[[^\[\]@]*@([^\[\]]*)\]|$)", re.DOTALL)

_HOSTS = ("NODELIST", "HOSTNAMES", "NODEHOST")
_STATES = ("STATE", "STATE#2", "STATELONG", "STATECOMPACT")
_BARE = ("NODELIST", "GRES", "GRES_USED", "CPUS", "CPUS(A/I/O/T)", "STATE", "PARTITION")
"""How a well-known monitor asks for rows without a header."""
_CPUS_BY_STATE = re.compile(r"\d+/\d+/\d+/\d+")


class Block(NodeForm):
    """Understands one block of ``scontrol show node``."""

    form = "block"

    def node(self, raw: bytes) -> Node:
        """Return what the block says."""
        told = _REASON.search(text_of(raw))
        # The reason is whatever somebody wrote, and stands behind all that is read here.
        said = words(raw if told is None else text_of(raw)[: told.start()].encode(), _WANTED)
        return Node(
            hosts=[said[KEY]],
            gres=said["Gres"],
            tres=said["CfgTRES"],
            state=[said["State"]],
            reason=told[1] if told else "",
            reason_s=self.instant("Reason", told[2] or "") if told else None,
            booted_s=self.instant("BootTime", said["BootTime"]),
            busy_s=self.instant("LastBusyTime", said["LastBusyTime"]),
        )


class Row(NodeForm):
    """Understands one row of ``sinfo``.

    Args:
        options: What the person who imports says.
        context: The columns.

    Raises:
        BadRecord: When there are none.
    """

    form = "row"

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options)
        named = (context or {}).get("columns")
        if not isinstance(named, list) or not all(isinstance(column, str) for column in named):
            raise BadRecord("the dead letter does not say which columns the record had", code="no-context")
        self._columns: list[str] = named

    def remember(self, raw: bytes) -> dict[str, object]:
        """Return form and columns."""
        return {**super().remember(raw), "columns": self._columns}

    def node(self, raw: bytes) -> Node:
        """Return what the row says."""
        said = row(self._columns, raw, "|")
        reason = said.get("REASON", "")
        return Node(
            hosts=list(hosts_of("NODELIST", next(said[column] for column in _HOSTS if column in said))),
            gres=said["GRES"],
            state=[said[column] for column in _STATES if column in said],
            cluster=None if said.get("CLUSTER", "") in NOTHING else said["CLUSTER"],
            reason=reason,
            reason_s=self.instant("TIMESTAMP", said.get("TIMESTAMP", "")),
        )


def blocks(path: Path) -> Picture:
    """Return the nodes of a listing of ``scontrol``.

    Raises:
        Refused: When it is none.
    """
    found = list(read_blocks(path, KEY))
    if not any(_ALIVE in piece.raw for piece in found):
        raise Refused(
            f"{path_text(path)} reads like configuration: its nodes have no live state",
            hint="import the output of scontrol show nodes --json, or of scontrol show node; nothing was imported",
        )
    return Picture(Block, found, {})


def rows(path: Path) -> Picture:
    """Return the nodes of a listing of ``sinfo``.

    Raises:
        Refused: When it does not tell the name, the GRES and the state of each node.
    """
    listing = open_listing(path)
    first = listing.cells()
    if _is_bare(first):
        return Picture(Row, list(listing.all()), {"columns": list(_BARE)})
    named = columns([column.upper() for column in first])
    missing = [" or ".join(asked) for asked in (_HOSTS, ("GRES",), _STATES) if not set(asked) & set(named)]
    if missing:
        raise Refused(
            f"{path_text(path)}: the columns do not fit: missing {', '.join(missing)}",
            hint='ask sinfo for them: sinfo -a -N -o "%N|%G|%T|%E|%H"',
        )
    return Picture(Row, list(listing.rest), {"columns": named})


def _is_bare(cells: Sequence[str]) -> bool:
    return len(cells) == len(_BARE) and _CPUS_BY_STATE.fullmatch(cells[4]) is not None
