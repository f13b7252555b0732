"""Share a topic of samples with others until told to end, and print what that took: ``sharing URL KAFKA``."""

import json
import signal
import sys
import time
from types import FrameType

from gpuledger.database.engine import make_engine
from gpuledger.ingest.collector import relax_collector
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.worker import Progress, Worker
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock
from gpuledger.streams.kafka import KafkaBroker
from gpuledger.streams.topics import TELEMETRY


def main(database_url: str, bootstrap: str) -> None:
    """Count samples; print the messages after the first batch, and the seconds of this process that they took."""
    relax_collector()
    signal.signal(signal.SIGTERM, _end)
    worker = Worker(
        Intake(make_engine(database_url), SystemClock(), Calendar()), KafkaBroker(bootstrap), TELEMETRY
    )
    marks: list[tuple[int, float]] = []

    def on_batch(done: Progress) -> None:
        marks.append((done.records, time.process_time()))

    try:
        worker.run(on_batch)
    except KeyboardInterrupt:
        (first, began), (last, ended) = marks[0], marks[-1]
        json.dump({"messages": last - first, "cpu_s": ended - began, "all": last}, sys.stdout)


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
