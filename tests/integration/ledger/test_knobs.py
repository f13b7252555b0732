"""The configuration of a cycle: the settings in force at its instant, a cluster's own before those of every cluster."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import make_engine, reading, writing
from gpuledger.events.budget import PolicyChanged
from gpuledger.events.envelope import ORG_BOOK, make
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock
from gpuledger.kernel.errors import Refused
from gpuledger.kernel.knobs import PolicyConfig, Value
from gpuledger.ledger.append import append
from gpuledger.ledger.knobs import Version, contradiction, read_config


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


def put(engine: sa.Engine, at_s: int, cluster: str | None = None, **settings: Value | None) -> None:
    fact = PolicyChanged(policy="settings", settings=settings, on_cluster=cluster)
    event, _ = make(id=f"{at_s}/{cluster}/{settings}", source="test", at_s=at_s, data=fact)
    with writing(engine) as writer:
        append(writer, ORG_BOOK, [event], clock=SystemClock(), calendar=Calendar())


def config(engine: sa.Engine, cluster: str, at_s: int, org_seq: int | None = None) -> PolicyConfig:
    with reading(engine) as reader:
        return read_config(reader, cluster, at_s, org_seq=org_seq)


def test_nothing_said_are_the_defaults(engine: sa.Engine) -> None:
    assert config(engine, "c", 0) == PolicyConfig()


def test_settings_hold_from_their_moment_on_whatever_the_order_they_came_in(engine: sa.Engine) -> None:
    put(engine, 200, horizon_s=2)
    put(engine, 100, horizon_s=1, grace_s=5)
    assert config(engine, "c", 99) == PolicyConfig()
    assert config(engine, "c", 100) == PolicyConfig(horizon_s=1, grace_s=5)
    assert config(engine, "c", 200) == PolicyConfig(horizon_s=2, grace_s=5)
    assert config(engine, "c", 200, org_seq=1) == PolicyConfig(horizon_s=2)


def test_a_cluster_has_its_own_until_they_are_taken_back(engine: sa.Engine) -> None:
    put(engine, 100, "c", horizon_s=1)
    put(engine, 200, horizon_s=2)
    put(engine, 300, "c", horizon_s=None)
    put(engine, 400, horizon_s=None)
    assert [config(engine, "c", at_s).horizon_s for at_s in (100, 200, 300, 400)] == [1, 1, 2, 86_400]
    assert [config(engine, "d", at_s).horizon_s for at_s in (100, 200, 300, 400)] == [86_400, 2, 2, 86_400]


def test_settings_that_do_not_go_together_stop_a_cycle_with_a_message(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:  # such a book is one of before they were refused
        before.setattr("gpuledger.ledger.org_orders.check", lambda *_: None)
        put(engine, 100, "c", protection_cap_s=100)
    with pytest.raises(Refused, match="'c': a quantum of 900 s") as caught:
        config(engine, "c", 100)
    assert "policy-data list" in caught.value.hint


def test_a_contradiction_is_told_where_it_comes_about_and_not_where_it_was_before() -> None:
    before = [Version(0, 1, "c", {"protection_cap_s": 1000}), Version(50, 2, "d", {"quantum_s": 30_000})]
    for wanted, told in (
        (Version(10, 3, None, {"quantum_s": 2000}), "cluster 'c': a quantum of 2000 s"),
        (
            Version(10, 3, None, {"notice_s": 29_000}),
            "every cluster: a quantum of 900 s or a notice of 29000",
        ),
        (Version(60, 3, "d", {"grace_s": 5}), None),
        (Version(60, 3, "c", {"quantum_s": None}), None),
        (Version(40, 3, "d", {"protection_cap_s": 29_000}), None),
    ):
        found = contradiction(before, [*before, wanted], wanted.from_s)
        assert (told is None and found is None) or (found is not None and str(told) in found.message), wanted
