"""From the spool to the broker, in a thread of its own: an outage of the broker stops no measurement."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from gpuledger.agent.spool import Spool
from gpuledger.kernel.errors import GpuledgerError, Refused
from gpuledger.streams.protocol import Broker, Message, Publisher
from gpuledger.streams.topics import SCHEDULER_EVENTS, TELEMETRY

BATCH = 200
FIRST_S, LAST_S = 1.0, 60.0
"""How long it waits before it tries again, at first and at last."""


class Shipping:
    """Publishes what waits in a spool, at least once and in order; readers know events by their identity.

    Args:
        spool: Where messages wait.
        broker: Where they go.
        note: Told when the broker goes away and when it is back.
    """

    def __init__(self, spool: Spool, broker: Broker, note: Callable[[str], None]) -> None:
        self._spool, self._broker, self._note = spool, broker, note
        self._publisher: Publisher | None = None
        self._is_cut_off = False

    def beside(self, work: Callable[[], None], stopped: threading.Event, idle_s: float) -> None:
        """Publish in a thread while a work is done, and once more at its end.

        A thread that fails stops the work and tells why: an agent that measures on and publishes nothing would not be
        missed before its spool is full.
        """
        with ThreadPoolExecutor(1, "shipping") as pool:
            published = pool.submit(self.run, stopped, idle_s)
            published.add_done_callback(lambda _: stopped.set())
            try:
                work()
            finally:
                stopped.set()
            published.result()

    def run(self, stopped: threading.Event, idle_s: float) -> None:
        """Publish until told to stop, and once more then."""
        pause_s = FIRST_S
        while not stopped.is_set():
            try:
                self.ship()
                pause_s = FIRST_S
                stopped.wait(idle_s)
            except GpuledgerError as error:
                self._cut_off(error)
                stopped.wait(pause_s)
                pause_s = min(2 * pause_s, LAST_S)
        try:
            self.ship()
        except GpuledgerError as error:
            self._cut_off(error)  # the rest waits on the disk for the next start
        finally:
            self._close()

    def ship(self) -> int:
        """Publish all that waits; return how many messages.

        Raises:
            Unavailable: When the broker cannot be reached.
        """
        shipped = 0
        while waiting := self._spool.waiting(BATCH):
            publisher = self._connected()
            for _, message in waiting:
                publisher.publish(message.topic, [Message(message.key, message.value.encode())])
            publisher.flush()
            self._spool.done([number for number, _ in waiting])
            shipped += len(waiting)
            if self._is_cut_off:
                self._is_cut_off = False
                self._note("the broker answers again")
        return shipped

    def _connected(self) -> Publisher:
        if self._publisher is None:
            self._broker.ensure_topics([SCHEDULER_EVENTS, TELEMETRY])
            self._publisher = self._broker.publisher()
        return self._publisher

    def _cut_off(self, error: GpuledgerError) -> None:
        if not self._is_cut_off:
            self._note(f"{error.message}; messages wait on the disk")
        self._is_cut_off = True
        self._close()

    def _close(self) -> None:
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            try:
                publisher.close()
            except (GpuledgerError, Refused):
                return  # what was not stored is in the spool
