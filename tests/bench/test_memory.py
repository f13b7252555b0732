"""Ingest needs no more memory after millions of events than after the first ones."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

EVENTS = {"short": 200_000, "full": 2_000_000}
GROWTH_MAX = 0.10
WARM_UP = slice(10, 20)
END = slice(90, 100)


def highest(resident_mib: list[float], percent: slice) -> float:
    """Return the most memory held in a part of the batches."""
    count = len(resident_mib)
    return max(resident_mib[percent.start * count // 100 : percent.stop * count // 100])


def test_memory_stays_flat_over_a_long_ingest(database_url: str, test_form: str, repository: Path) -> None:
    """The most that is held during the last tenth of the events against the second tenth."""
    process = subprocess.run(
        [sys.executable, "-m", "tests.bench.holding", database_url, str(EVENTS[test_form])],
        cwd=repository,
        check=True,
        capture_output=True,
        text=True,
    )
    resident_mib = json.loads(process.stdout)
    warm, last = highest(resident_mib, WARM_UP), highest(resident_mib, END)
    growth = last / warm - 1
    print(
        f"\ningest of {EVENTS[test_form]:,} events holds {warm:,.1f} MiB in the second tenth,"
        f" {last:,.1f} MiB in the last: {growth:+.1%}, at most {GROWTH_MAX:+.0%} allowed"
    )
    assert growth <= GROWTH_MAX
