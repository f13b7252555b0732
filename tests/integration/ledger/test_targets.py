"""Targets of the layers: shown beside them from their moment on, a cluster's own before those of every cluster."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import make_engine, reading, writing
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock
from gpuledger.kernel.knobs import PolicyConfig
from gpuledger.ledger.policies import put_settings
from gpuledger.ledger.targets import LAYERS, targets


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


def put(engine: sa.Engine, at_s: int, cluster: str | None, **settings: int | None) -> None:
    with writing(engine) as writer:
        put_settings(writer, cluster, settings, at_s, "ada", clock=SystemClock(), calendar=Calendar())


def of(
    engine: sa.Engine, cluster: str | None, at_s: int, org_seq: int | None = None
) -> dict[str, str | None]:
    with reading(engine) as reader:
        return targets(reader, cluster, at_s, org_seq=org_seq)


def test_nobody_set_one(engine: sa.Engine) -> None:
    assert of(engine, "c", 0) == dict.fromkeys(LAYERS)


def test_they_hold_from_their_moment_on_and_a_clusters_own_come_first(engine: sa.Engine) -> None:
    put(engine, 100, None, availability_target_permille=980, impact_target_permille=950)
    put(engine, 200, "c", impact_target_permille=900)
    assert of(engine, "c", 99) == dict.fromkeys(LAYERS)
    assert of(engine, "c", 100)["impact"] == "0.9500"
    assert of(engine, "c", 200) == {
        "availability": "0.9800", "occupancy": None, "impact": "0.9000", "utilisation": None,
    }  # fmt: skip
    assert of(engine, None, 200)["impact"] == "0.9500"
    assert of(engine, "c", 200, org_seq=1)["impact"] == "0.9500"


def test_one_that_is_taken_back_is_none(engine: sa.Engine) -> None:
    put(engine, 100, None, occupancy_target_permille=900)
    put(engine, 200, None, occupancy_target_permille=None)
    assert of(engine, "c", 200)["occupancy"] is None


def test_they_decide_nothing_and_records_without_them_are_what_they_were() -> None:
    assert not {name for name in PolicyConfig().written() if name.endswith("_target_permille")}
    assert PolicyConfig(impact_target_permille=950).written()["impact_target_permille"] == 950
