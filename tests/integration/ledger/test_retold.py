"""The history of a cluster over a time: everything that ran or waited in it, as of any row of its book."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import make_engine, reading
from gpuledger.events import host, workload
from gpuledger.events.envelope import Event, make
from gpuledger.events.registry import Fact
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.ledger import queries, retold
from gpuledger.ledger.inventory import HostInterval

T0 = 1_709_251_200


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


def event(at_s: int, data: Fact) -> Event:
    return make(
        id=f"{type(data).__name__}/{at_s}/{getattr(data, 'workload', '')}",
        source="t",
        at_s=T0 + at_s,
        data=data,
    )[0]


def asked(name: str, at_s: int) -> Event:
    told = workload.Submitted(cluster="c", workload=name, account="org/a", user="u", gpus_milli=1000)
    return event(at_s, told)


def ran(name: str, from_s: int, to_s: int) -> list[Event]:
    started = workload.Started(cluster="c", workload=name, run="1", attempt=1, gpus_milli=1000, hosts=["h"])
    ended = workload.Ended(cluster="c", workload=name, run="1", reason="completed")
    return [event(from_s, started), event(to_s, ended)]


def named(engine: sa.Engine, from_s: int, to_s: int, seq: int | None = None) -> dict[str, list[str]]:
    with reading(engine) as reader:
        found = retold.iter_workloads(reader, "c", T0 + from_s, T0 + to_s, seq=seq)
        return {name: [type(fact.data).__name__ for fact in known] for name, known in found}


def test_who_ran_or_waited_comes_with_all_that_is_known_in_order_of_hearing(engine: sa.Engine) -> None:
    intake = Intake(engine, FixedClock(instant(T0 + 10_000)), Calendar())
    intake.take([asked("z", 0), *ran("z", 100, 500), asked("a", 50), asked("over", 0), *ran("over", 10, 90)])
    with reading(engine) as reader:
        seq = queries.sequences(reader)["c"]
    intake.take(ran("a", 600, 700))
    assert named(engine, 90, 1_000) == {
        "z": ["Submitted", "Started", "Ended"],
        "a": ["Submitted", "Started", "Ended"],
    }
    assert [*named(engine, 90, 1_000)] == ["z", "a"]  # not by name
    assert named(engine, 90, 1_000, seq)["a"] == ["Submitted"]
    assert [*named(engine, 500, 600)] == ["a"]  # half-open at both ends
    assert [*named(engine, 0, 10)] == ["z", "over"]


def test_hosts_and_where_the_book_begins(engine: sa.Engine) -> None:
    def state(at_s: int, data: type[host.HostFact], **more: str) -> Event:
        return event(at_s, data(cluster="c", host="h", gpus=8, gpu_model="H100", **more))  # type: ignore[arg-type]

    with reading(engine) as reader:
        assert retold.begins_s(reader, "c") is None
    intake = Intake(engine, FixedClock(instant(T0 + 10_000)), Calendar())
    intake.take([state(10, host.Registered)])
    with reading(engine) as reader:
        seq = queries.sequences(reader)["c"]
    intake.take([state(100, host.StateChanged, state="unhealthy"), asked("early", 5)])
    with reading(engine) as reader:
        now = retold.host_intervals(reader, "c", T0 + 50, T0 + 500)
        before = retold.host_intervals(reader, "c", T0 + 50, T0 + 500, seq=seq)
        assert retold.host_intervals(reader, "c", T0, T0 + 10) == []
        assert (retold.begins_s(reader, "c"), retold.begins_s(reader, "c", seq=seq)) == (T0 + 5, T0 + 10)
    assert now == [
        HostInterval("h", 8, "H100", "healthy", T0 + 10, T0 + 100),
        HostInterval("h", 8, "H100", "unhealthy", T0 + 100, None),
    ]
    assert before == [HostInterval("h", 8, "H100", "healthy", T0 + 10, None)]
