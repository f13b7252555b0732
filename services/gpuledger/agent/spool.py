"""Messages that are not published yet, on disk and bounded: when it is full the oldest go, and the loss is told.

Every message passes through it, so that neither an outage of the broker nor the end of the agent loses one.
"""

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from gpuledger.kernel.errors import Unavailable
from gpuledger.streams.topics import Topic

_SUFFIX = ".message"
_GAP = "gap.json"


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that went: of which time, and how many."""

    start_s: int
    end_s: int
    messages: int

    def __add__(self, other: "Lost") -> "Lost":
        """Return both as one."""
        return Lost(
            start_s=min(self.start_s, other.start_s),
            end_s=max(self.end_s, other.end_s),
            messages=self.messages + other.messages,
        )


class Spooled(msgspec.Struct, frozen=True, kw_only=True):
    """A message with what is lost when it is.

    Args:
        topic: Where it goes.
        key: Its partition key.
        value: Its bytes, which are text.
        if_lost: What a gap must say when it never gets there.
    """

    topic: Topic
    key: str
    value: str
    if_lost: Lost


class Spool:
    """A folder with a file per message, in order. Shared by the thread that samples and the one that publishes.

    Args:
        folder: Where; created when needed.
        limit_bytes: How much it holds.
    """

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._folder, self._limit_bytes = folder, limit_bytes
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._sizes = {int(path.stem): path.stat().st_size for path in sorted(folder.glob(f"*{_SUFFIX}"))}
        except (OSError, ValueError) as error:
            raise Unavailable(f"{folder} cannot be used: {error}", hint="check --spool") from error
        self._next = max(self._sizes, default=0) + 1
        self._lost = self._told_before()

    def put(self, message: Spooled, tells: Lost | None = None) -> None:
        """Keep a message until it is published; the oldest go when there is no room.

        Args:
            message: The message.
            tells: The loss that it tells of, which is forgiven thereby, unless it has grown meanwhile.
        """
        data = msgspec.json.encode(message)
        with self._lock:
            if tells is not None and self._lost == tells:
                self._lost = None
            while self._sizes and sum(self._sizes.values()) + len(data) > self._limit_bytes:
                self._drop(min(self._sizes))
            try:
                _write(self._path(self._next), data)
            except OSError:  # the disk is full: the message itself is what is lost
                self._note(message.if_lost)
                return
            self._sizes[self._next] = len(data)
            self._next += 1
            if (
                tells is not None and self._lost is None
            ):  # after the message is safe: told twice beats told never
                (self._folder / _GAP).unlink(missing_ok=True)

    def waiting(self, most: int) -> list[tuple[int, Spooled]]:
        """Return the oldest messages, each with its number."""
        with self._lock:
            found = []
            for number in sorted(self._sizes)[:most]:
                message = self._read(number)
                if message is not None:
                    found.append((number, message))
            return found

    def done(self, numbers: Sequence[int]) -> None:
        """Let go of messages that are stored elsewhere."""
        with self._lock:
            for number in numbers:
                self._forget(number)

    def is_empty(self) -> bool:
        """Say whether nothing waits."""
        with self._lock:
            return not self._sizes

    def lost(self) -> Lost | None:
        """Return what went and was not told yet."""
        with self._lock:
            return self._lost

    def _told_before(self) -> Lost | None:
        try:
            return msgspec.json.decode((self._folder / _GAP).read_bytes(), type=Lost)
        except (OSError, msgspec.DecodeError):
            return None

    def _note(self, lost: Lost) -> None:
        self._lost = lost if self._lost is None else self._lost + lost
        with suppress(OSError):  # on a full disk it is remembered as long as the agent lives
            _write(self._folder / _GAP, msgspec.json.encode(self._lost))

    def _drop(self, number: int) -> None:
        message = self._read(number)
        if message is not None:
            self._note(message.if_lost)
        self._forget(number)

    def _read(self, number: int) -> Spooled | None:
        """Return a message; of one that somebody damaged no more than its loss is left."""
        path = self._path(number)
        try:
            return msgspec.json.decode(path.read_bytes(), type=Spooled)
        except FileNotFoundError:
            self._sizes.pop(number, None)
            return None
        except (OSError, msgspec.DecodeError):
            at_s = int(path.stat().st_mtime)
            self._note(Lost(start_s=at_s, end_s=at_s, messages=1))
            self._forget(number)
            return None

    def _forget(self, number: int) -> None:
        if self._sizes.pop(number, None) is not None:
            self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:012}{_SUFFIX}"


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    draft = path.with_suffix(".draft")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
