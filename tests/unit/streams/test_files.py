import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.brokers.reading import numbered, publish, read

from gpuledger.kernel.errors import Refused, Unavailable
from gpuledger.streams.files import FileBroker
from gpuledger.streams.protocol import Message, PositionLost
from gpuledger.streams.topics import ALLOCATIONS, TELEMETRY, TOPICS


@pytest.fixture
def broker(tmp_path: Path) -> FileBroker:
    broker = FileBroker(tmp_path / "streams")
    broker.ensure_topics(TOPICS)
    return broker


def test_a_topic_is_a_folder_and_a_message_a_line(broker: FileBroker, tmp_path: Path) -> None:
    publish(broker, TELEMETRY, [Message("k", b'{"a":1}'), Message("k", b'{"a":2}')])

    assert (tmp_path / "streams/gpu.telemetry/0.ndjson").read_bytes() == b'{"a":1}\n{"a":2}\n'
    assert sorted(path.name for path in (tmp_path / "streams").iterdir()) == sorted(TOPICS)


def test_a_value_with_a_line_end_is_refused_and_those_before_it_are_kept(broker: FileBroker) -> None:
    publisher = broker.publisher()

    with pytest.raises(Refused, match="line end"):
        publisher.publish(TELEMETRY, [Message("k", b"good"), Message("host-7", b"bad\n")])
    publisher.close()

    assert [record.value for record in read(broker, TELEMETRY, 1)] == [b"good"]


def test_a_topic_keeps_the_partitions_that_it_was_created_with(tmp_path: Path) -> None:
    FileBroker(tmp_path, partitions=1).ensure_topics([TELEMETRY])

    wider = FileBroker(tmp_path, partitions=4)
    wider.ensure_topics([TELEMETRY])

    assert list(wider.partitions(TELEMETRY)) == [0]


def test_a_key_finds_the_same_partition_in_every_process(tmp_path: Path) -> None:
    broker = FileBroker(tmp_path, partitions=4)
    broker.ensure_topics([TELEMETRY])
    publish(broker, TELEMETRY, [Message("node-17", b"here")])

    assert broker.path(TELEMETRY, 3).read_bytes() == b"here\n", "the hash must never change"


def test_a_torn_tail_is_bad_alone_and_spoils_no_other_message(broker: FileBroker) -> None:
    publish(broker, ALLOCATIONS, numbered(2))
    with broker.path(ALLOCATIONS, 0).open("ab") as killed:
        killed.write(b'{"half":')

    publish(broker, ALLOCATIONS, numbered(2, first=2))

    assert [record.value for record in read(broker, ALLOCATIONS, 5)] == [b"0", b"1", b'{"half":', b"2", b"3"]


def test_after_a_failed_write_nothing_stays_queued_to_be_written_twice(broker: FileBroker) -> None:
    publisher = broker.publisher()
    publisher.publish(TELEMETRY, numbered(3))
    folder = broker.path(TELEMETRY, 0).parent
    hidden = folder.rename(folder.with_name("hidden"))
    with pytest.raises((Refused, Unavailable)):
        publisher.flush()
    hidden.rename(folder)

    publisher.publish(TELEMETRY, numbered(3))
    publisher.close()

    assert broker.path(TELEMETRY, 0).read_bytes() == b"0\n1\n2\n"


def test_a_topic_deleted_while_it_is_read_has_lost_the_position(broker: FileBroker) -> None:
    publish(broker, TELEMETRY, numbered(3))
    subscriber = broker.subscriber(TELEMETRY)
    subscriber.assign({0: 2})

    broker.path(TELEMETRY, 0).unlink()

    with pytest.raises(PositionLost):
        subscriber.poll(10, 0)


def test_a_busy_partition_does_not_starve_the_others(tmp_path: Path) -> None:
    broker = FileBroker(tmp_path, partitions=2)
    broker.ensure_topics([TELEMETRY])
    for partition in (0, 1):
        broker.path(TELEMETRY, partition).write_bytes(b"x\n" * 100)
    subscriber = broker.subscriber(TELEMETRY)
    subscriber.assign({0: 0, 1: 0})

    assert {record.partition for _ in range(2) for record in subscriber.poll(10, 0)} == {0, 1}
    subscriber.close()


def test_threads_with_publishers_of_their_own_do_not_mix_their_lines(broker: FileBroker) -> None:
    def write(name: int) -> None:
        publisher = broker.publisher()
        for number in range(200):
            publisher.publish(TELEMETRY, [Message("k", b"%d %d " % (name, number) + b"x" * 2000)])
            publisher.flush()
        publisher.close()

    threads = [threading.Thread(target=write, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    written = [tuple(map(int, record.value.split()[:2])) for record in read(broker, TELEMETRY, 600)]
    assert sorted(written) == [(name, number) for name in range(3) for number in range(200)]
    assert all([n for m, n in written if m == name] == list(range(200)) for name in range(3))


WRITER = """
import sys
from pathlib import Path
from gpuledger.streams.files import FileBroker
from gpuledger.streams.protocol import Message
broker = FileBroker(Path(sys.argv[1]))
publisher = broker.publisher()
number = 0
while True:
    values = (b"%d %s" % (n, b"x" * 50_000) for n in range(number, number + 40))
    publisher.publish("gpu.telemetry", (Message("k", value) for value in values))
    publisher.flush()
    number += 40
    print(number, flush=True)
"""


def test_a_writer_killed_at_any_moment_has_stored_all_that_it_flushed(
    broker: FileBroker, tmp_path: Path
) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WRITER, str(tmp_path / "streams")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as writer:
        assert writer.stdout is not None
        flushed = [int(writer.stdout.readline()) for _ in range(3)][-1]
        writer.send_signal(signal.SIGKILL)
        flushed = max([flushed, *map(int, writer.stdout.read().split())])

    publish(broker, TELEMETRY, [Message("k", b"after")])

    lines = broker.path(TELEMETRY, 0).read_bytes().splitlines()
    assert lines[-1] == b"after"
    assert [line.split()[0] for line in lines[:flushed]] == [b"%d" % number for number in range(flushed)]


def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(Unavailable, match="cannot be written") as raised:
        FileBroker(tmp_path / "file" / "streams").ensure_topics([TELEMETRY])
    assert "GPULEDGER_HOME" in raised.value.hint


def test_a_topic_needs_a_partition(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="at least one"):
        FileBroker(tmp_path, partitions=0)
