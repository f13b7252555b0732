"""Names follow the Prometheus rules, and no label can grow without bound."""

import re
from typing import get_args

import pytest
from fastapi.testclient import TestClient

from gpuledger.api.app import create_app
from gpuledger.api.metrics import MetricName, help_of
from gpuledger.database.engine import make_engine
from gpuledger.kernel.clock import SystemClock


@pytest.mark.parametrize("name", get_args(MetricName))
def test_every_name_has_the_prefix_and_a_sentence(name: MetricName) -> None:
    assert re.fullmatch(r"gpuledger_[a-z_]+", name)
    assert help_of(name).endswith(".")


def test_invented_methods_and_paths_share_one_label() -> None:
    engine = make_engine("postgresql+psycopg://nobody@127.0.0.1:1/nothing?connect_timeout=1")
    with TestClient(create_app(engine, SystemClock()), raise_server_exceptions=False) as client:
        client.request("BREW", "/coffee")
        client.get("/tea/1")
        text = client.get("/metrics").text
    assert 'method="other",route="unmatched"' in text
    assert "coffee" not in text
    assert "tea" not in text
