"""Source ``slurm-sacctmgr``: what ``sacctmgr --parsable2 show`` prints.

One of its listings holds records: ``show event`` tells when a host was down or drained and when it was back, as
accounting kept it. The others hold settings: accounts and their shares, QOS and their limits, users. Settings have
no time, and who may use how much is decided in the ledger: they are refused, with what they say.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.files import path_text
from gpuledger.sources.lines import Broken, Line
from gpuledger.sources.pieces import Facts, PieceSource, interpret
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.slurm.listing import BAR, columns, open_listing, row
from gpuledger.sources.slurm.node_facts import Node, NodeForm
from gpuledger.sources.slurm.settings import refusal

_EVENT = ("NodeName", "TimeStart", "TimeEnd", "State", "TRES")
_WANTED = "Cluster,NodeName,TimeStart,TimeEnd,State,Reason,TRES"
_GOES_ON = "goes_on"


class _Events(NodeForm):
    """Understands an event of a host: a trouble, from its beginning to its end."""

    form = "event"

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        kept = context or {}
        named, starts, goes_on = kept.get("columns"), kept.get("starts"), kept.get(_GOES_ON)
        self._columns: Sequence[str] = named if isinstance(named, list) else ()
        self._starts: frozenset[tuple[str, str]] = starts if isinstance(starts, frozenset) else frozenset()
        self._goes_on = goes_on is True

    def remember(self, raw: bytes) -> dict[str, object]:
        """Return the columns, and whether another trouble begins where this one ends."""
        kept = {**super().remember(raw), "columns": list(self._columns)}
        try:
            return kept | {_GOES_ON: self._is_followed(row(self._columns, raw, BAR))}
        except BadRecord:
            return kept

    def translate(self, raw: bytes) -> Facts:
        """Return when the trouble began, and when the host was well again; none for an event of the cluster."""
        if not self._columns:
            raise BadRecord(
                "the dead letter does not say which columns the record had",
                code="no-context",
                hint="import the file again",
            )
        said = row(self._columns, raw, BAR)
        if not said["NodeName"]:
            return (), ()
        began, oddities = super().translate(raw)
        ended_s = self.instant("TimeEnd", said["TimeEnd"])
        if ended_s is None or not began or self._is_followed(said):
            return began, oddities
        well = Node(hosts=[said["NodeName"]], tres=said["TRES"], state=["idle"], cluster=said.get("Cluster"))
        ended, _ = self.facts(well, ended_s)
        return (*began, *ended), oddities

    def node(self, raw: bytes) -> Node:
        """Return the host as it was when its trouble began."""
        said = row(self._columns, raw, BAR)
        return Node(
            hosts=[said["NodeName"]],
            tres=said["TRES"],
            state=[said["State"]],
            cluster=said.get("Cluster"),
            reason=said.get("Reason", ""),
            reason_s=self.instant("TimeStart", said["TimeStart"]),
        )

    def _is_followed(self, said: Mapping[str, str]) -> bool:
        return self._goes_on or (said["NodeName"], said["TimeEnd"]) in self._starts


def _rows(named: Sequence[str], pieces: Sequence[Line | Broken]) -> list[dict[str, str]]:
    """Return the rows that can be told apart into fields; the others are told when they are read."""
    found = []
    for piece in pieces:
        try:
            found.append(row(named, piece.raw, BAR))
        except BadRecord:
            continue
    return found


def _starts(rows: Sequence[Mapping[str, str]]) -> frozenset[tuple[str, str]]:
    return frozenset((said["NodeName"], said["TimeStart"]) for said in rows)


class Sacctmgr(PieceSource):
    """Source ``slurm-sacctmgr``."""

    name = "slurm-sacctmgr"
    interpreter = _Events

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every event of a host; see ``Source.read``. Listings of settings are refused with what they say."""
        listing = open_listing(path)
        named = columns(listing.cells())
        pieces = list(listing.rest)
        if not {"NodeName", "TimeStart"} <= set(named):
            raise refusal(path, named, _rows(named, pieces))
        if missing := [column for column in _EVENT if column not in named]:
            raise Refused(
                f"{path_text(path)}:{listing.first.number}: the columns do not fit: missing {', '.join(missing)}",
                hint=f"ask for: sacctmgr --parsable2 show event format={_WANTED}; nothing was imported",
            )
        context: dict[str, object] = {"columns": named, "starts": _starts(_rows(named, pieces))}
        return interpret(path, pieces, _Events(options, context))
