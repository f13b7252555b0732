"""From a node of a Slurm cluster, as a picture of its live state shows it, to facts about a host.

A picture says how a host is, not since when; what it does tell is when the host booted, and when a reason was
set. A host counts as installed from its boot, and as healthy at the moment of the picture. Two pictures in
which nothing happened in between give the same facts of its boot and of its troubles.
"""

import hashlib
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from gpuledger.events.envelope import Event, data_json, make
from gpuledger.events.host import HostFact, Registered, Retired, StateChanged
from gpuledger.events.words import apart
from gpuledger.kernel.accounts import escape_part
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.documents import Document
from gpuledger.sources.lines import Broken, Line
from gpuledger.sources.pieces import Facts, Interpreter
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.slurm.job import SCHEDULER
from gpuledger.sources.slurm.node_states import FUTURE, Health, health, reason_code
from gpuledger.sources.slurm.scontrol import NOTHING
from gpuledger.sources.slurm.tres import Gpus, Tres
from gpuledger.sources.values import PART_LIMIT_BYTES, LocalTimes, Odd, cluster_name, name

UNKNOWN_MODEL = "unknown"
"""The model of GPUs that Slurm counts without their type."""

_GPUS = re.compile(r"(?:^|,)\s*(gpu:[^,(]+)")
"""Entries for whole GPUs; shards and MPS share the devices that these count."""
_COUNTED = re.compile(r"gres/gpu(?:=|:)[^,]*")
_DIGEST_CHARACTERS = 12


@dataclass(slots=True, kw_only=True)
class Node:
    """What a record says about hosts that are alike.

    Args:
        hosts: Their names.
        gres: What is configured, such as ``gpu:h100:8(S:0-1)``.
        tres: What is counted, such as ``cpu=128,gres/gpu=8``.
        state: The words of its state.
        cluster: The cluster, where the record names it.
        reason: Why they are not healthy, in somebody's words.
        reason_s: When that was said.
        booted_s: When they booted.
        busy_s: When they were last seen at work.
    """

    hosts: list[str]
    gres: str = ""
    tres: str = ""
    state: list[str] = field(default_factory=list)
    cluster: str | None = None
    reason: str = ""
    reason_s: int | None = None
    booted_s: int | None = None
    busy_s: int | None = None

    def newest_s(self) -> int:
        """Return the newest instant that the record knows of; the picture is no older."""
        return max(self.reason_s or 0, self.booted_s or 0, self.busy_s or 0)


def facts(node: Node, tres: Tres, cluster: str, seen_s: int | None) -> Facts:
    """Return the facts about every host of a record; none for hosts without GPUs.

    Args:
        node: The record.
        tres: Counts its GPUs.
        cluster: The cluster that the hosts belong to.
        seen_s: When the picture was taken, or an instant shortly before.

    Raises:
        BadRecord: When the GPUs or the state cannot be understood, or nothing tells when it was so.
    """
    gpus, model, oddities = _installed(node, tres)
    if not gpus or not node.hosts:
        return (), ()
    found = health("state", node.state)
    events = [
        event
        for host in node.hosts
        for event in _events(node, _Host(cluster, name("node", host), gpus, model), found, seen_s)
    ]
    if not events:
        raise _no_time(found)
    if found.state is None and found.word != FUTURE:
        oddities.append(("unknown-health", f"state: {found.word}: whether the host is healthy is not known"))
    return tuple(events), oddities


@dataclass(frozen=True, slots=True)
class _Host:
    """One of the hosts."""

    cluster: str
    name: str
    gpus: int
    model: str

    def event(self, kind: type[HostFact], word: str, at_s: int, **said: Any) -> tuple[Event, bytes]:  # noqa: ANN401
        """Return a fact about it."""
        data = kind(cluster=self.cluster, host=self.name, gpus=self.gpus, gpu_model=self.model, **said)
        # Ids are journalled: what somebody typed is no part of them.
        digest = hashlib.sha256(data_json(apart(data)[0])).hexdigest()[:_DIGEST_CHARACTERS]
        id_ = f"host/{self.name}/{word}/{at_s}/{digest}"
        return make(id=id_, source=f"{SCHEDULER}/{self.cluster}", at_s=at_s, data=data)


def _events(node: Node, host: _Host, found: Health, seen_s: int | None) -> Iterator[tuple[Event, bytes]]:
    booted_s = node.booted_s or 0
    if found.word == FUTURE:
        if seen_s is not None:
            yield host.event(Retired, "retired", seen_s, reason=FUTURE)
        return
    if booted_s:
        yield host.event(Registered, "registered", booted_s)
    if found.state in {"healthy", "reserved"}:  # a reason that is left from before says nothing of either
        if seen_s is not None and seen_s > booted_s:
            yield host.event(StateChanged, found.state, seen_s, state=found.state)
        return
    since_s = node.reason_s or seen_s
    if found.state is not None and since_s is not None:
        yield host.event(
            StateChanged,
            found.state,
            max(since_s, booted_s),  # it booted into a trouble that is older
            state=found.state,
            reason=reason_code(found.word, node.reason),
            evidence_at=instant(node.reason_s) if node.reason_s else None,
        )


def _installed(node: Node, tres: Tres) -> tuple[int, str, list[Odd]]:
    """Return how many GPUs each host has, of which model."""
    configured = tres.details("Gres", _GPUS.findall(node.gres))
    counted = tres.text("TRES", ",".join(_COUNTED.findall(node.tres)))
    found = configured or counted or Gpus(0)
    oddities = list(found.oddities)
    if counted is not None and counted.milli != found.milli:
        message = f"Gres: {found.milli} milli-GPU, but TRES counts {counted.milli}; {found.milli} are booked"
        oddities.append(("gpu-count-differs", message))
    gpus, rest = divmod(found.milli, GPU_MILLI)
    if rest:  # seven slices of a device are the device
        gpus += 1
        oddities.append(
            ("part-of-a-device", f"Gres: {node.gres}: {found.milli} milli-GPU count as {gpus} devices")
        )
    return gpus, found.model or UNKNOWN_MODEL, oddities


def _no_time(found: Health) -> BadRecord:
    return BadRecord(
        f"nothing tells when the host was {found.state or found.word}",
        code="no-time",
        hint="import the output of scontrol show nodes --json or scontrol show node, which tell when a host booted",
    )


class NodeForm(Interpreter):
    """Understands the nodes of one form.

    Args:
        options: What the person who imports says, and when the picture was taken.
        context: What the pieces of the form need to be understood, such as the columns of a table.
    """

    form: ClassVar[str]

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        self._times = LocalTimes(options.timezone)
        self._cluster = None if options.cluster is None else cluster_name(options.cluster)
        self._tres = Tres(options.fractions)
        self._odd_times: list[Odd] = []

    def remember(self, raw: bytes) -> dict[str, object]:
        """Return the form, so that a retry reads the piece as one of it."""
        del raw
        return {"form": self.form}

    def translate(self, raw: bytes) -> Facts:
        """Return the facts about the hosts of a piece."""
        self._odd_times.clear()
        events, oddities = self.facts(self.node(raw), self.options.at_s)
        return events, [*self._odd_times, *oddities]

    def facts(self, node: Node, seen_s: int | None) -> Facts:
        """Return the facts about the hosts of a record, in the cluster that they belong to.

        Raises:
            BadRecord: As ``facts``.
        """
        own = node.cluster and escape_part(name("cluster", node.cluster, limit_bytes=PART_LIMIT_BYTES))
        return facts(node, self._tres, self._cluster or own or SCHEDULER, seen_s)

    def instant(self, field: str, value: str) -> int | None:
        """Return a local time in seconds since the epoch; None for what stands for none.

        Raises:
            BadRecord: When it is no time.
        """
        if value in NOTHING:
            return None
        at_s, odd = self._times.read(field, value)
        if odd is not None:
            self._odd_times.append(odd)
        return at_s

    @abstractmethod
    def node(self, raw: bytes) -> Node:
        """Return what a piece says.

        Raises:
            BadRecord: When it cannot be understood.
        """


class Picture(NamedTuple):
    """A file that shows the nodes of a cluster at one moment.

    Args:
        form: Who understands its pieces.
        pieces: One for each node, or for each group of nodes.
        context: What they need to be understood.
        seen_s: When it was taken, as far as it says.
        document: The JSON document that it stands in, if it is one.
    """

    form: type[NodeForm]
    pieces: list[Line | Broken]
    context: dict[str, object]
    seen_s: int | None = None
    document: Document | None = None
