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
from typing import NamedTuple

import msgspec

from gpuledger.collect.kubernetes_api import RESOURCES, Api, Gone, Resource
from gpuledger.collect.kubernetes_state import PositionFile
from gpuledger.events.envelope import Event, make
from gpuledger.events.heartbeat import Heartbeat
from gpuledger.ingest.dead_letters import IMPORT_STREAM, DeadLetter
from gpuledger.ingest.importer import Sink, take_records
from gpuledger.ingest.intake import Taken
from gpuledger.kernel.clock import Clock, instant, iso, seconds
from gpuledger.kernel.errors import BadRecord, Unavailable
from gpuledger.sources.kubernetes.objects import Node, Pod, PodGroup, Workload
from gpuledger.sources.kubernetes.pods import TERMINAL
from gpuledger.sources.kubernetes.reading import ADDED, BOOKMARK, DELETED, VANISHED, condition, decode
from gpuledger.sources.kubernetes.watching import Watched
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.values import Odd

SOURCE = "pods"
"""The source that reads a dead letter of a collector again; all of them read every kind."""

BATCH = 500
WAITING_MAX = 4 * BATCH
HEARTBEAT_S = 60
WATCH_S = 300
"""How long one watch goes on before it is asked for anew."""

PAUSE_S, PAUSE_MAX_S = 1, 60
"""Between two watches; doubled while the API cannot be reached."""

CATCH_UP_S = 1
"""How long a single look waits for what has changed since the last one."""

LISTED = "LISTED"
"""Beside the words of a watch: this is all there is of the kind."""


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


class Heard(NamedTuple):
    """What the API said of a kind.

    Args:
        kind: The kind.
        change: A word of a watch, or ``LISTED``.
        objects: The object that changed, or all there are.
        version: How far it has come with it.
        at_s: When it was heard.
    """

    kind: str
    change: str
    objects: Sequence[bytes]
    version: str
    at_s: int


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
        self.collected = Collected()
        for resource in RESOURCES:  # what was told of them is not told again
            for raw in self._position.living.get(resource.kind, {}).values():
                with suppress(BadRecord):  # then its next state says it all
                    self._interpreter.translate(raw)

    def look(self) -> Collected:
        """Book what has happened up to now.

        Raises:
            Unavailable: When the API, the database or the broker cannot be reached.
            Refused: When the API does not let us.
        """
        for resource, version in self._api.resources():
            self._book(list(self._catch_up(resource, version)))
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
            since = self._position.versions[resource.kind]
            listener = Listener(self._api, resource, version, self._clock, heard)
            threading.Thread(target=listener.run, args=(since, stop), daemon=True).start()
        while not stop.is_set():
            batch = list(_waiting(heard))
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
                try:
                    facts, oddities = self._interpreter.translate(line)
                except BadRecord as error:
                    letters.append(self._letter(line, error))
                    continue
                self._remember(heard.kind, change, raw, tells=bool(facts))
                if facts:
                    records.append((line, list(facts)))
                self._tell(oddities)
        taken, refused = take_records(self._sink, records, letters)
        if refused:
            put_aside = [self._letter(line, error) for line, error in refused]
            self._sink.take([], put_aside)
            letters += put_aside
        lines = {line for line, _ in refused}
        self._count([facts for line, facts in records if line not in lines], letters, taken)
        for heard in batch:
            self._position.seen[heard.kind] = heard.at_s
            if heard.version:
                self._position.versions[heard.kind] = heard.version
        if batch:
            self._file.write(self._position)

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

    def _remember(self, kind: str, change: str, raw: bytes, *, tells: bool) -> None:
        """Keep the state of an object that tells of GPUs, until it is over or gone."""
        living = self._position.living.setdefault(kind, {})
        kept = in_short(kind, raw) if tells and change not in {DELETED, VANISHED} else None
        if kept is None:
            living.pop(_uid(raw), None)
        else:
            living[_uid(raw)] = kept

    def _letter(self, line: bytes, error: BadRecord) -> DeadLetter:
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
            context={"path": place, "line": 0, "cluster": self._cluster, "timezone": None, "source": SOURCE},
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


class Listener:
    """Listens to one kind, and lists it again when the API has forgotten where it was.

    Args:
        api: The cluster's API.
        resource: The kind.
        version: The version to read.
        clock: Says when something was heard.
        heard: Where to put it.
    """

    def __init__(
        self,
        api: Api,
        resource: Resource,
        version: str,
        clock: Clock,
        heard: "queue.Queue[Heard | Exception]",
    ) -> None:
        self._api, self._resource, self._version = api, resource, version
        self._clock, self._heard = clock, heard

    def run(self, since: str, stop: threading.Event) -> None:
        """Put what is heard into the queue until told to stop; what no waiting mends is put there too and ends it."""
        known: str | None = since
        pause_s = PAUSE_S
        try:
            while not stop.is_set():
                try:
                    known = self._list() if known is None else self._watch(known)
                    pause_s = PAUSE_S
                except Gone:
                    known = None
                    continue
                except Unavailable:
                    pause_s = min(2 * pause_s, PAUSE_MAX_S)
                stop.wait(pause_s)
        except Exception as error:  # noqa: BLE001 - one that ended in silence would look like a kind without news
            self._heard.put(error)

    def _list(self) -> str:
        found = listed(self._api, self._resource, self._version, self._clock)
        self._heard.put(found)
        return found.version

    def _watch(self, since: str) -> str:
        kind = self._resource.kind
        for change in self._api.watch(self._resource, self._version, since, WATCH_S):
            since = change.version or since
            self._heard.put(Heard(kind, change.change, [change.object], since, seconds(self._clock.now())))
        self._heard.put(Heard(kind, BOOKMARK, (), since, seconds(self._clock.now())))
        return since


def listed(api: Api, resource: Resource, version: str, clock: Clock) -> Heard:
    """List a kind.

    Raises:
        Unavailable: When the API cannot be reached, or its list changes faster than it can be read.
        Refused: When the API does not let us.
    """
    try:
        listing = api.list(resource, version)
    except Gone as error:
        raise Unavailable(error.message, hint="the list is read again") from error
    return Heard(resource.kind, LISTED, listing.objects, listing.version, seconds(clock.now()))


def in_short(kind: str, raw: bytes) -> bytes | None:
    """Return what is read of an object, or None when it is over: nothing that it may say will add anything."""
    found: Pod | Workload | PodGroup | Node
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
        case _:
            found = decode(Node, raw)
    return msgspec.json.encode({"kind": kind, **msgspec.to_builtins(found)})


def _uid(raw: bytes) -> str:
    try:
        meta = msgspec.json.decode(raw, type=_Identified).metadata
    except msgspec.DecodeError:
        return ""
    return meta.uid or meta.name


def _line(change: str, raw: bytes, at_s: int) -> bytes:
    return msgspec.json.encode({"type": change, "object": msgspec.Raw(raw), "observedAt": iso(instant(at_s))})


def _waiting(heard: "queue.Queue[Heard | Exception]") -> Iterator[Heard]:
    """Yield what waits, at most a batch of it; wait a second for the first.

    Raises:
        Exception: What a listener could not go on with.
    """
    try:
        item = heard.get(timeout=1)
        for _ in range(BATCH):
            if isinstance(item, Exception):
                raise item
            yield item
            item = heard.get_nowait()
    except queue.Empty:
        return


class _Meta(msgspec.Struct):
    uid: str = ""
    name: str = ""


class _Identified(msgspec.Struct):
    metadata: _Meta
