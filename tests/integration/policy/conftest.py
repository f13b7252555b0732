"""A contended cluster for every test of the policy's service."""

from collections.abc import Iterator

import pytest
from tests.integration.policy.led import Led, a_cluster, hosts_of
from tests.integration.policy.worlds import World, contended

from gpuledger.database.engine import make_engine


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """See ``contended``."""
    engine = make_engine(database_url)
    yield contended(engine)
    engine.dispose()


@pytest.fixture
def led(database_url: str) -> Iterator[Led]:
    """After its first cycle: ``w-a`` and ``w-b`` are to start, ``w-large`` has a reservation."""
    with a_cluster(database_url) as found:
        found.turn(0)
        found.start("w-a", 8, hosts_of(found, "w-a"))
        yield found
