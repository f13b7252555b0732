"""Streams as folders of lines: the broker that needs no server.

A topic is a folder, a partition the file ``<topic>/<partition>.ndjson`` in it, a message one line and
its position the number of that line, counted from 0. Files are only ever appended to.
"""

import shutil
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gpuledger.kernel.errors import NotFound, Refused, Unavailable
from gpuledger.streams.appending import LineAppender, sync_folder
from gpuledger.streams.limits import check_size
from gpuledger.streams.lines import LOST_HINT, LineReader
from gpuledger.streams.protocol import Message, PositionLost, Record
from gpuledger.streams.topics import Described, Plan, Topic

SUFFIX = ".ndjson"
WRITE_BYTES = 1 << 20
"""Messages are collected up to this size before they are written."""

_POLL_FIRST_S = 0.001
_POLL_LAST_S = 0.05


class FileBroker:
    """Topics below one folder.

    Args:
        folder: Holds one folder per topic; created when needed.
        partitions: How many partitions a new topic gets; one is all that its one reader needs.
    """

    def __init__(self, folder: Path, *, partitions: int = 1) -> None:
        if partitions < 1:
            raise Refused(f"a topic needs at least one partition, not {partitions}")
        self._folder = folder
        self._partitions = partitions

    def ensure_topics(self, topics: Sequence[Topic], plan: Plan | None = None) -> Sequence[Topic]:
        """Create the topics that do not exist yet, each in one step, so that none is ever seen half made.

        Files are kept for ever, whatever the plan says, and only one that is given says how many partitions.

        Raises:
            Unavailable: When the folder cannot be written.
        """
        created = []
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for topic in topics:
                if not self._has(topic):
                    self._create(topic, self._partitions if plan is None else plan.partitions)
                    created.append(topic)
        except OSError as error:
            raise Unavailable(
                f"{self._folder} cannot be written: {error.strerror}",
                hint="check GPULEDGER_HOME and the permissions of that folder",
            ) from error
        return created

    def describe(self, topics: Sequence[Topic]) -> Sequence[Described]:
        """Return how topics are, whether they exist or not; counting their lines reads them once."""
        described = []
        for topic in topics:
            files = [self.path(topic, n) for n in (self.partitions(topic) if self._has(topic) else ())]
            records = 0
            for path in files:
                reader = LineReader(path, 0)
                records += reader.end()
                reader.close()
            described.append(Described(topic, len(files), records))
        return described

    def partitions(self, topic: Topic) -> Sequence[int]:
        """Return the partitions of an existing topic.

        Raises:
            NotFound: When the topic does not exist.
        """
        found = sorted(int(path.stem) for path in (self._folder / topic).glob(f"*{SUFFIX}"))
        if not found:
            raise NotFound(f"topic {topic} does not exist in {self._folder}", hint="create the topic first")
        return found

    def publisher(self) -> "FilePublisher":
        """Open a publisher."""
        return FilePublisher(self)

    def subscriber(self, topic: Topic) -> "FileSubscriber":
        """Open a subscriber; nothing is read before ``assign``."""
        return FileSubscriber(self, topic)

    def group(self, topic: Topic, name: str) -> None:
        """Return None: files are read by one worker."""

    def path(self, topic: Topic, partition: int) -> Path:
        """Return the file of a partition, which need not exist."""
        return self._folder / topic / f"{partition}{SUFFIX}"

    def _has(self, topic: Topic) -> bool:
        return (self._folder / topic).is_dir()

    def _create(self, topic: Topic, partitions: int) -> None:
        draft = Path(tempfile.mkdtemp(prefix=f".{topic}.", dir=self._folder))
        try:
            draft.chmod(0o750)
            for partition in range(partitions):
                (draft / f"{partition}{SUFFIX}").touch(mode=0o640)
            sync_folder(draft)
            draft.rename(self._folder / topic)
            sync_folder(self._folder)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            # Another process may have been faster, which is just as good.
            if not self._has(topic):
                raise


class FilePublisher:
    """Appends messages as lines. Not shared between threads.

    After ``Unavailable`` what was queued is forgotten: publish again all that followed the last flush.
    """

    def __init__(self, broker: FileBroker) -> None:
        self._broker = broker
        self._partitions: dict[Topic, Sequence[int]] = {}
        self._appenders: dict[tuple[Topic, int], LineAppender] = {}
        self._queued: defaultdict[tuple[Topic, int], bytearray] = defaultdict(bytearray)
        self._unsynced: set[tuple[Topic, int]] = set()

    def publish(self, topic: Topic, messages: Iterable[Message]) -> None:
        """Queue messages in order; those before a refused one stay queued.

        Raises:
            Refused: When a value holds a line end or is larger than ``MAX_VALUE_BYTES``.
            NotFound: When the topic does not exist.
            Unavailable: When a file cannot be written.
        """
        if topic not in self._partitions:
            self._partitions[topic] = self._broker.partitions(topic)
        partitions = self._partitions[topic]
        for message in messages:
            _check(topic, message)
            target = (topic, partitions[zlib.crc32(message.key.encode()) % len(partitions)])
            queue = self._queued[target]
            queue += message.value
            queue += b"\n"
            if len(queue) >= WRITE_BYTES:
                self._write(target)

    def flush(self) -> None:
        """Return when every queued message is on the disk.

        Raises:
            Unavailable: When a message could not be stored.
        """
        for target in list(self._queued):
            self._write(target)
        while self._unsynced:
            self._appenders[self._unsynced.pop()].sync()

    def close(self) -> None:
        """Flush and release the files."""
        try:
            self.flush()
        finally:
            for appender in self._appenders.values():
                appender.close()
            self._appenders.clear()

    def _write(self, target: tuple[Topic, int]) -> None:
        lines = self._queued.pop(target)
        try:
            if target not in self._appenders:
                self._appenders[target] = LineAppender(self._broker.path(*target))
            self._appenders[target].append(bytes(lines))
        except (NotFound, Unavailable):
            self._queued.clear()
            raise
        self._unsynced.add(target)


class FileSubscriber:
    """Reads the files of one topic. Not shared between threads."""

    def __init__(self, broker: FileBroker, topic: Topic) -> None:
        self._broker = broker
        self._topic = topic
        self._readers: dict[int, LineReader] = {}

    def assign(self, positions: Mapping[int, int]) -> None:
        """Start at the next line to read of each partition (0 for the beginning).

        Raises:
            PositionLost: When a file has fewer complete lines than were read, or is gone.
            NotFound: When a partition that was never read does not exist.
        """
        self.close()
        try:
            for partition, line in positions.items():
                self._readers[partition] = self._open(partition, line)
        except (NotFound, PositionLost):
            self.close()
            raise

    def poll(self, limit: int, timeout_s: float) -> Sequence[Record]:
        """Return up to ``limit`` next records, in order per partition; empty after the timeout.

        Raises:
            PositionLost: When a file was truncated, replaced, deleted or rewritten meanwhile.
        """
        deadline = time.monotonic() + timeout_s
        pause_s = _POLL_FIRST_S
        while True:
            if records := self._read(limit):
                return records
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                return []
            time.sleep(min(pause_s, remaining_s))
            pause_s = min(2 * pause_s, _POLL_LAST_S)

    def end_positions(self) -> Mapping[int, int]:
        """Return, for each assigned partition, how many complete lines it has."""
        return {partition: reader.end() for partition, reader in self._readers.items()}

    def first_positions(self, partitions: Sequence[int]) -> Mapping[int, int]:
        """Return the first line of each partition; files are never shortened."""
        return dict.fromkeys(partitions, 0)

    def close(self) -> None:
        """Release the files."""
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def _open(self, partition: int, line: int) -> LineReader:
        path = self._broker.path(self._topic, partition)
        try:
            return LineReader(path, line)
        except NotFound:
            if line == 0:
                raise
            raise PositionLost(f"{path} is gone, the reader was at {line}", hint=LOST_HINT) from None

    def _read(self, limit: int) -> list[Record]:
        records: list[Record] = []
        for partition, reader in list(self._readers.items()):
            first = reader.line
            lines = reader.read(limit - len(records))
            records += [
                Record(self._topic, partition, position, line) for position, line in enumerate(lines, first)
            ]
            if lines:
                # Served last next time, so that a busy partition cannot starve the others.
                self._readers[partition] = self._readers.pop(partition)
        return records


def _check(topic: Topic, message: Message) -> None:
    if b"\n" in message.value:
        raise Refused(
            f"a message for {topic} with key {message.key!r} holds a line end",
            hint="encode values as one line; JSON without indentation is one",
        )
    check_size(topic, message)
