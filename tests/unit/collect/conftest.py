"""A collector that starts, stops and starts again, against recorded answers."""

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.collect.ledgers import Ledger
from tests.unit.collect.recorded import Recorded, served
from tests.unit.sources.kubernetes.building import (
    bound,
    node,
    pod,
)

from gpuledger.collect.kubernetes import Collector
from gpuledger.collect.kubernetes_api import KubernetesApi
from gpuledger.collect.kubernetes_state import PositionFile
from gpuledger.kernel.clock import FixedClock

NOON = dt.datetime(2026, 10, 31, 22, tzinfo=dt.UTC)
AT_8 = "2026-10-31T20:00:00Z"


@pytest.fixture
def recorded() -> Recorded:
    recorded = Recorded()
    recorded.happen("ADDED", node("node-1"))
    recorded.happen("ADDED", pod("x", 2, bound(AT_8)))
    return recorded


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOON)


@pytest.fixture
def start(
    recorded: Recorded, ledger: Ledger, clock: FixedClock, tmp_path: Path
) -> Iterator[Callable[[], Collector]]:
    """Start a collector; a second one goes on where the first stopped."""
    with served(recorded, tmp_path) as config:
        api = KubernetesApi(config)
        yield lambda: Collector(api, ledger, clock, PositionFile(tmp_path / "position"), "c")
