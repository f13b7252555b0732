"""Book a topic of Kafka and print what memory this process held after each batch, in MiB: ``draining URL KAFKA``."""

import json
import sys

from tests.bench.holding import resident_mib

from gpuledger.database.engine import make_engine
from gpuledger.ingest.collector import relax_collector
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.worker import Worker
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock
from gpuledger.streams.kafka import KafkaBroker
from gpuledger.streams.topics import SCHEDULER_EVENTS


def main(database_url: str, bootstrap: str) -> None:
    """Drain the topic; print how many events were new, and the memory after each batch, as JSON."""
    relax_collector()
    intake = Intake(make_engine(database_url), SystemClock(), Calendar())
    held: list[float] = []
    done = Worker(intake, KafkaBroker(bootstrap), SCHEDULER_EVENTS).run(
        lambda _: held.append(resident_mib()), once=True
    )
    json.dump({"accepted": done.accepted, "held": held}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
