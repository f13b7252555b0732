"""Listens to a cluster: what its API says of each kind of objects in turn, whatever befalls the connection."""

import queue
import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gpuledger.collect.kubernetes_api import Api, Gone, Resource
from gpuledger.kernel.clock import Clock, seconds
from gpuledger.kernel.errors import Unavailable
from gpuledger.sources.kubernetes.reading import BOOKMARK

BATCH = 500
WAITING_MAX = 4 * BATCH
WATCH_S = 300
"""How long one watch goes on before it is asked for anew."""

PAUSE_S, PAUSE_MAX_S = 1, 60
"""Between two watches; doubled while the API cannot be reached."""

LISTED = "LISTED"
"""Beside the words of a watch: this is all there is of the kind."""


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


def waiting(heard: "queue.Queue[Heard | Exception]") -> Iterator[Heard]:
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
