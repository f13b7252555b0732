"""Whatever publishers and readers do in whatever order, a partition is a list that grows."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gpuledger.streams.files import FileBroker, FilePublisher, FileSubscriber
from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import TELEMETRY

values = st.binary(max_size=30).map(lambda value: value.replace(b"\n", b""))
batches = st.lists(values, max_size=5)


class FilesAreLists(RuleBasedStateMachine):
    """One partition, one publisher that may be opened again or die half-way, one reader."""

    publisher: FilePublisher
    subscriber: FileSubscriber

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.broker = FileBroker(Path(self.folder.name))
        self.broker.ensure_topics([TELEMETRY])
        self.publisher = self.broker.publisher()
        self.subscriber = self.broker.subscriber(TELEMETRY)
        self.subscriber.assign({0: 0})
        self.stored: list[bytes] = []
        self.queued: list[bytes] = []
        self.torn = b""
        self.position = 0

    @rule(batch=batches)
    def publish(self, batch: list[bytes]) -> None:
        self.publisher.publish(TELEMETRY, [Message("k", value) for value in batch])
        self.queued += batch

    @rule()
    def flush(self) -> None:
        self.publisher.flush()
        self._model_flush()

    @rule()
    def reopen(self) -> None:
        self.publisher.close()
        self._model_flush()
        self.publisher = self.broker.publisher()

    @rule(half=values)
    def another_writer_dies_half_way(self, half: bytes) -> None:
        with self.broker.path(TELEMETRY, 0).open("ab") as file:
            file.write(half)
        self.torn += half

    @rule(limit=st.integers(1, 6))
    def poll(self, limit: int) -> None:
        records = self.subscriber.poll(limit, 0)
        expected = self.stored[self.position : self.position + limit]
        assert [record.value for record in records] == expected
        assert [record.position for record in records] == [self.position + n for n in range(len(expected))]
        self.position += len(expected)

    @rule(data=st.data())
    def assign(self, data: st.DataObject) -> None:
        self.position = data.draw(st.integers(0, len(self.stored)))
        self.subscriber.assign({0: self.position})

    @invariant()
    def the_end_is_the_number_of_stored_lines(self) -> None:
        if hasattr(self, "subscriber"):
            assert self.subscriber.end_positions() == {0: len(self.stored)}

    def _model_flush(self) -> None:
        if self.queued and self.torn:
            self.stored.append(self.torn)
            self.torn = b""
        self.stored += self.queued
        self.queued = []

    def teardown(self) -> None:
        if hasattr(self, "subscriber"):
            self.subscriber.close()
            self.publisher.close()
            self.folder.cleanup()


TestFilesAreLists = FilesAreLists.TestCase
TestFilesAreLists.settings = settings(stateful_step_count=30)
