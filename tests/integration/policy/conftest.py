"""A contended cluster for every test of the policy's service."""

from collections.abc import Iterator

import pytest
from tests.integration.policy.worlds import World, contended

from gpuledger.database.engine import make_engine


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """See ``contended``."""
    engine = make_engine(database_url)
    yield contended(engine)
    engine.dispose()
