"""Book so many events and print what memory this process held after each batch, in MiB: ``holding URL EVENTS``."""

import json
import os
import sys
from pathlib import Path

from tests.bench.load import batches

from gpuledger.database.engine import make_engine
from gpuledger.ingest.collector import relax_collector
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock

BATCH_RUNS = 1000
PAGES_PER_MIB = 2**20 // os.sysconf("SC_PAGE_SIZE")


def resident_mib() -> float:
    """Return the memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) / PAGES_PER_MIB


def main(database_url: str, events: int) -> None:
    """Book the events and print the memory after each batch as a JSON list."""
    relax_collector()
    intake = Intake(make_engine(database_url), SystemClock(), Calendar())
    held, booked = [], 0
    for batch in batches(BATCH_RUNS):
        intake.take(batch)
        held.append(resident_mib())
        booked += len(batch)
        if booked >= events:
            break
    json.dump(held, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
