"""Nodes of Slurm in JSON: one object per node, or one per group of nodes of a partition that are alike.

Numbers are plain in older versions and ``{set, infinite, number}`` in newer ones; a state is one word with
flags beside it, or a list of words.
"""

from pathlib import Path
from typing import TypeVar

import msgspec

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.documents import Document, open_document
from gpuledger.sources.files import path_text
from gpuledger.sources.slurm.hosts import hosts_of
from gpuledger.sources.slurm.node_facts import Node, NodeForm, Picture
from gpuledger.sources.slurm.shapes import Value, Words, bad_shape, instant_of

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Node(msgspec.Struct, kw_only=True):
    name: str
    state: Words = None
    state_flags: list[str] | None = None
    gres: str | None = None
    tres: str | None = None
    cluster_name: str | None = None
    reason: str | None = None
    reason_changed_at: Value = None
    boot_time: Value = None
    last_busy: Value = None


class _Nodes(msgspec.Struct):
    nodes: list[str]


class _State(msgspec.Struct):
    state: Words = None


class _Gres(msgspec.Struct):
    total: str | None = None


class _Reason(msgspec.Struct):
    description: str | None = None
    time: Value = None


class _Group(msgspec.Struct, kw_only=True):
    nodes: _Nodes
    node: _State
    gres: _Gres | None = None
    cluster: str | None = None
    reason: str | _Reason | None = None


_Record = TypeVar("_Record")


class NodeObject(NodeForm):
    """Understands one node of ``nodes``."""

    form = "node"
    _decoder = msgspec.json.Decoder(_Node)

    def node(self, raw: bytes) -> Node:
        """Return what the object says."""
        said = _decode(self._decoder, raw)
        return Node(
            hosts=[said.name],
            gres=said.gres or "",
            tres=said.tres or "",
            state=[*_words(said.state), *(said.state_flags or ())],
            cluster=said.cluster_name or None,
            reason=said.reason or "",
            reason_s=instant_of("reason_changed_at", said.reason_changed_at),
            booted_s=instant_of("boot_time", said.boot_time),
            busy_s=instant_of("last_busy", said.last_busy),
        )


class GroupObject(NodeForm):
    """Understands one group of ``sinfo``: nodes of one partition that are alike."""

    form = "group"
    _decoder = msgspec.json.Decoder(_Group)

    def node(self, raw: bytes) -> Node:
        """Return what the object says."""
        said = _decode(self._decoder, raw)
        reason = _Reason(said.reason) if said.reason is None or isinstance(said.reason, str) else said.reason
        return Node(
            hosts=[host for listed in said.nodes.nodes for host in hosts_of("nodes", listed)],
            gres=(said.gres and said.gres.total) or "",
            state=_words(said.node.state),
            cluster=said.cluster or None,
            reason=reason.description or "",
            reason_s=instant_of("reason.time", reason.time),
        )


def picture(path: Path) -> Picture:
    """Return the nodes of a document.

    Raises:
        Refused: When it is no JSON, or holds neither ``nodes`` nor ``sinfo``.
    """
    document = open_document(path)
    seen_s = _last_update(document)
    for form, key in ((GroupObject, "sinfo"), (NodeObject, "nodes")):
        if document.has(key):
            return Picture(form, list(document.pieces(key)), {}, seen_s, document)
    raise Refused(
        f"{path_text(path)}: holds neither nodes nor sinfo",
        hint="import the output of scontrol show nodes --json, or of sinfo --json",
    )


def _last_update(document: Document) -> int | None:
    """Return when the newest change of a node was, which newer versions tell."""
    try:
        said = msgspec.convert(document.value("last_update"), Value)
        return instant_of("last_update", said)
    except (msgspec.ValidationError, BadRecord, Refused):
        return None


def _decode(decoder: "msgspec.json.Decoder[_Record]", raw: bytes) -> _Record:
    try:
        return decoder.decode(raw)
    except _UNREADABLE as error:
        raise bad_shape(raw, error) from error


def _words(state: Words) -> list[str]:
    return [state] if isinstance(state, str) else state or []
