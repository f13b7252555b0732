"""Watches a cluster: states of its objects -> facts -> the ledger, from where it stopped the last time.

Each kind is listed once, then watched from the version of that list. Facts have the identity of the run that they
tell of, so that a state that is seen again changes nothing. When the API has forgotten the version, the kind is
listed anew, and what is not there any more is over since it was last heard of: an estimate, until better is known.
"""

import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from gpuledger.collect.kubernetes_api import RESOURCES, Api, Gone, Resource
from gpuledger.collect.kubernetes_listening import (
    LISTED,
    WAITING_MAX,
    Heard,
    Listener,
    listed,
    waiting,
)
from gpuledger.collect.kubernetes_state import PositionFile
from gpuledger.events.envelope import Event, make
from gpuledger.events.heartbeat import Heartbeat
from gpuledger.ingest.dead_letters import IMPORT_STREAM, DeadLetter
from gpuledger.ingest.importer import Sink, take_records
from gpuledger.ingest.intake import Taken
from gpuledger.kernel.clock import Clock, instant, iso, seconds
from gpuledger.kernel.errors import BadRecord, Refused, Unavailable
from gpuledger.sources.kubernetes.claims import ResourceClaim
from gpuledger.sources.kubernetes.devices import ResourceSlice, is_of_gpus
from gpuledger.sources.kubernetes.endings import TERMINAL
from gpuledger.sources.kubernetes.objects import Node, Part, Pod, PodGroup, Workload
from gpuledger.sources.kubernetes.reading import ADDED, BOOKMARK, DELETED, VANISHED, condition, decode
from gpuledger.sources.kubernetes.watching import Watched
from gpuledger.sources.pieces import remembered
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.values import Odd

SOURCE = "pods"
"""The source that reads a dead letter of a collector again; all of them read every kind."""

HEARTBEAT_S = 60
CATCH_UP_S = 1
"""How long a single look waits for what has changed since the last one."""

CLAIM = "ResourceClaim"

TOLD_BY_PODS = frozenset((CLAIM, "ResourceSlice"))
"""Kinds that are no facts of their own, and are kept while they are there: pods say nothing without them."""


@dataclass(slots=True)
class Collected:
    """What a collector has done since it started. Counts are states of objects, not events."""

    records: int = 0
    accepted: int = 0
    repeated: int = 0
    dead_lettered: int = 0
    vanished: int = 0
    anomalies: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)
    """What a person should read: dead letters and anomalies, since it was last emptied."""

    def as_json(self) -> dict[str, object]:
        """Return the counts under the published keys."""
        return {
            "records": self.records,
            "accepted": self.accepted,
            "repeated": self.repeated,
            "dead_lettered": self.dead_lettered,
            "vanished": self.vanished,
            "anomalies": dict(sorted(self.anomalies.items())),
        }


class Collector:
    """Watches one cluster.

    Args:
        api: The cluster's API.
        sink: Where facts go.
        clock: Says when something was heard.
        file: Where the position is kept.
        cluster: The cluster's name in the ledger.

    Raises:
        Refused: When the position cannot be read, or the cluster's name cannot be one.
    """

    def __init__(self, api: Api, sink: Sink, clock: Clock, file: PositionFile, cluster: str) -> None:
        self._api, self._sink, self._clock, self._file, self._cluster = api, sink, clock, file, cluster
        self._interpreter = Watched(ImportOptions(cluster=cluster))
        self._position = file.read()
        self._beat_s = 0
        self._kinds: dict[str, tuple[Resource, str]] = {}
        self.collected = Collected()
        self._interpreter.standing.restore(self._position.jobs)
        self._interpreter.shares.kept = self._position.shares
        for resource in RESOURCES:  # what was told of them is not told again
            for raw in self._position.living.get(resource.kind, {}).values():
                try:
                    self._interpreter.translate(raw)
                except BadRecord:  # such as a pod whose claim is gone: its next state says all the rest
                    if resource.kind == "Pod":
                        self._interpreter.follow(_path(raw))

    def look(self) -> Collected:
        """Book what has happened up to now.

        Raises:
            Unavailable: When the API, the database or the broker cannot be reached.
            Refused: When the API does not let us.
        """
        found = self._api.resources()
        self._kinds = {resource.kind: (resource, version) for resource, version in found}
        for resource, version in found:
            try:
                self._book(list(self._catch_up(resource, version)))
            except Refused as error:
                if not resource.is_optional:
                    raise
                self._tell([("no-right", f"{error.message}; {error.hint}")])
        self._heartbeat()
        return self.collected

    def watch(self, stop: threading.Event, on_batch: Callable[[Collected], None]) -> None:
        """Book what happens, until told to stop.

        Raises:
            Unavailable: When the database or the broker cannot be reached, or the API at the beginning.
            Refused: When the API does not let us.
        """
        on_batch(self.look())
        heard: queue.Queue[Heard | Exception] = queue.Queue(WAITING_MAX)
        for resource, version in self._api.resources():
            since = self._position.versions.get(resource.kind)
            if since is None:
                continue  # it is done without
            listener = Listener(self._api, resource, version, self._clock, heard)
            threading.Thread(target=listener.run, args=(since, stop), daemon=True).start()
        while not stop.is_set():
            batch = list(waiting(heard))
            self._book(batch)
            self._heartbeat()
            if batch:
                on_batch(self.collected)

    def _catch_up(self, resource: Resource, version: str) -> Iterator[Heard]:
        since = self._position.versions.get(resource.kind)
        if since is not None:
            try:
                changes = list(self._api.watch(resource, version, since, CATCH_UP_S))
            except Gone:
                since = None
            else:
                now_s = seconds(self._clock.now())
                for change in changes:
                    yield Heard(resource.kind, change.change, [change.object], change.version, now_s)
                yield Heard(resource.kind, BOOKMARK, (), "", now_s)
        if since is None:
            yield listed(self._api, resource, version, self._clock)

    def _book(self, batch: Sequence[Heard]) -> None:
        """Book what was heard; then, and only then, keep how far that was."""
        records: list[tuple[bytes, list[tuple[Event, bytes]]]] = []
        letters: list[DeadLetter] = []
        for heard in batch:
            for change, raw, at_s in self._states(heard):
                line = _line(change, raw, at_s)
                if heard.kind == "Pod":
                    self._hear_of_claims(raw, at_s)
                try:
                    facts, oddities = self._interpreter.translate(line)
                except BadRecord as error:
                    letters.append(self._letter(line, error))
                    continue
                self._remember(heard.kind, change, raw, tells=bool(facts) or heard.kind in TOLD_BY_PODS)
                if facts:
                    records.append((line, list(facts)))
                self._tell(oddities)
        taken, refused = take_records(self._sink, records, letters)
        if refused:
            put_aside = [self._letter(line, error, is_understood=True) for line, error in refused]
            self._sink.take([], put_aside)
            letters += put_aside
        lines = {line for line, _ in refused}
        self._count([facts for line, facts in records if line not in lines], letters, taken)
        for heard in batch:
            self._position.seen[heard.kind] = heard.at_s
            if heard.version:
                self._position.versions[heard.kind] = heard.version
        if batch:
            self._position.jobs = self._interpreter.standing.kept()
            self._file.write(self._position)

    def _hear_of_claims(self, pod: bytes, at_s: int) -> None:
        """Ask for the claims of a pod that was bound: kinds are watched apart, and it may be heard of before them."""
        if CLAIM not in self._kinds:
            return
        for namespace, name in self._interpreter.unheard_claims(pod):
            with suppress(Refused, Unavailable, BadRecord):  # then the pod says that they are not known
                raw = self._api.get(*self._kinds[CLAIM], namespace, name)
                if raw is not None:
                    self._interpreter.translate(_line(ADDED, raw, at_s))
                    self._remember(CLAIM, ADDED, raw, tells=True)

    def _states(self, heard: Heard) -> Iterator[tuple[str, bytes, int]]:
        """Yield each state with its word and when it was seen; after a list what is not there any more."""
        if heard.change == BOOKMARK:
            return
        if heard.change != LISTED:
            yield heard.change, heard.objects[0], heard.at_s
            return
        living = self._position.living.get(heard.kind, {})
        gone = dict(living)
        for raw in heard.objects:
            gone.pop(_uid(raw), None)
            yield ADDED, raw, heard.at_s
        for raw in gone.values():
            self.collected.vanished += 1
            yield VANISHED, raw, self._position.seen.get(heard.kind, heard.at_s)
        if heard.kind == "Workload":  # of those that were over nothing else tells that they are gone
            self._interpreter.standing.only({_path(raw) for raw in heard.objects}, heard.at_s)

    def _remember(self, kind: str, change: str, raw: bytes, *, tells: bool) -> None:
        """Keep the state of an object that tells of GPUs, until it is over or gone."""
        living = self._position.living.setdefault(kind, {})
        kept = in_short(kind, raw) if tells and change not in {DELETED, VANISHED} else None
        if kept is None:
            living.pop(_uid(raw), None)
        else:
            living[_uid(raw)] = kept

    def _letter(self, line: bytes, error: BadRecord, *, is_understood: bool = False) -> DeadLetter:
        place = f"kubernetes/{self._cluster}"
        self.collected.told.append(f"dead letter: {error.message}")
        return DeadLetter(
            stream=f"{IMPORT_STREAM}{SOURCE}/{self._cluster}",
            partition=0,
            position=0,
            place=place,
            code=error.code,
            reason=f"{place}: {error.message}",
            hint=error.hint,
            raw=line,
            context={
                "path": place,
                "line": 0,
                "cluster": self._cluster,
                "timezone": None,
                "source": SOURCE,
                **remembered(self._interpreter, line, is_understood=is_understood),
            },
        )

    def _tell(self, oddities: Sequence[Odd]) -> None:
        for code, message in oddities:
            self.collected.anomalies[code] += 1
            self.collected.told.append(f"anomaly {code}: {message}")

    def _count(
        self, records: Sequence[Sequence[tuple[Event, bytes]]], letters: Sequence[DeadLetter], taken: Taken
    ) -> None:
        self.collected.records += len(records) + len(letters)
        self.collected.dead_lettered += len(letters)
        for facts in records:
            new = any((event.source, event.id) in taken.accepted for event, _ in facts)
            self.collected.accepted += new
            self.collected.repeated += not new

    def _heartbeat(self) -> None:
        """Say that everything up to now is told, now and then."""
        now_s = seconds(self._clock.now())
        if now_s - self._beat_s < HEARTBEAT_S or not self._position.seen:
            return
        heard_s = min(self._position.seen.values())
        beat = make(
            id=f"heartbeat/{heard_s}",
            source=f"kubernetes/{self._cluster}/collector",
            at_s=heard_s,
            data=Heartbeat(cluster=self._cluster),
        )
        self._sink.take([beat], [])
        self._beat_s = now_s


def in_short(kind: str, raw: bytes) -> bytes | None:
    """Return what is read of an object, or None when it is over: nothing that it may say will add anything."""
    found: Part
    match kind:
        case "Pod":
            found = decode(Pod, raw)
            if found.status is not None and found.status.phase in TERMINAL:
                return None
        case "Workload":
            found = decode(Workload, raw)
            finished = condition(found.status.conditions if found.status else None, "Finished")
            if finished is not None and finished.status == "True":
                return None
        case "PodGroup":
            found = decode(PodGroup, raw)
        case "ResourceClaim":
            found = decode(ResourceClaim, raw)
        case "ResourceSlice":
            found = decode(ResourceSlice, raw)
            if not is_of_gpus(found):
                return None
        case _:
            found = decode(Node, raw)
    return msgspec.json.encode({"kind": kind, **msgspec.to_builtins(found)})


def _uid(raw: bytes) -> str:
    meta = _meta(raw)
    return meta.uid or meta.name


def _path(raw: bytes) -> str:
    meta = _meta(raw)
    return f"{meta.namespace}/{meta.name}/{meta.uid}"


def _meta(raw: bytes) -> "_Meta":
    try:
        return msgspec.json.decode(raw, type=_Identified).metadata
    except msgspec.DecodeError:
        return _Meta()


def _line(change: str, raw: bytes, at_s: int) -> bytes:
    return msgspec.json.encode({"type": change, "object": msgspec.Raw(raw), "observedAt": iso(instant(at_s))})


class _Meta(msgspec.Struct):
    uid: str = ""
    name: str = ""
    namespace: str = ""


class _Identified(msgspec.Struct):
    metadata: _Meta
