"""The client against the real API: every field that it reads is sent."""

import asyncio
import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from fastapi.testclient import TestClient
from tests.integration.ledger.books import Ledger, registered, submitted, told

from gpuledger.client import (
    AsyncLedgerClient,
    LedgerClient,
    Order,
    answers,
    outcomes,
    plans,
    records,
    stories,
)
from gpuledger.events.envelope import encode
from gpuledger.identity.roles import Role
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import Forbidden, NotFound, Refused
from gpuledger.policy.service import issue_cycle


@pytest.fixture
def client(api: TestClient) -> Iterator[LedgerClient]:
    def relay(request: httpx2.Request) -> httpx2.Response:
        answer = api.get(request.url.raw_path.decode())
        return httpx2.Response(answer.status_code, content=answer.content)

    with LedgerClient("http://127.0.0.1:8080", transport=httpx2.MockTransport(relay)) as client:
        yield client


def test_every_answer_can_be_read(client: LedgerClient) -> None:
    assert [c.cluster for c in client.clusters().clusters] == ["alpha", "beta", "gamma"]
    assert client.books().dead_letters == 1
    assert len(client.balances(cluster="alpha").balances) == 2
    assert client.balance("alpha/robotics").available_gpu_ms > 0
    assert client.allocations("alpha").allocations
    assert client.usage("day", cluster="alpha").rows[0].key == "2026-01-10"
    assert client.layers("total", from_=dt.date(2026, 2, 1), to=dt.date(2026, 2, 2)).rows[0].occupancy
    assert client.budget_vs_actual(cluster="beta").rows[0].reason


def test_a_schedulers_loop_over_the_real_api(
    guarded: TestClient, own_ledger: Ledger, tokens: dict[Role, str]
) -> None:
    """What docs/api.md shows: events in, orders out, an admission before each start."""

    def relay(request: httpx2.Request) -> httpx2.Response:
        path, headers = request.url.raw_path.decode(), dict(request.headers)
        answer = guarded.request(request.method, path, content=request.content, headers=headers)
        return httpx2.Response(answer.status_code, content=answer.content)

    with LedgerClient(
        "http://127.0.0.1:8080", tokens[Role.SCHEDULER], transport=httpx2.MockTransport(relay)
    ) as ledger:
        assert ledger.me().clusters == ("alpha",)
        now_s = seconds(own_ledger.clock.now())
        fact = submitted("new", account="org/vision/video", minimum_runtime_s=3600)
        event = encode(id="new", source="scheduler", at_s=now_s, data=fact)
        assert ledger.post_events([event]).accepted == 1
        assert ledger.post_events([event]).repeated == 1
        assert ledger.directives("alpha").starts == ()
        assert ledger.admit("alpha", "new").protected_s == 3600
        assert ledger.workload("new").account == "org/vision/video"
        with pytest.raises(Forbidden):
            ledger.grant(Order("org/speech", 1, cluster="alpha", period="2026-12", reason="x"))
        with pytest.raises(Forbidden):
            ledger.directives("beta")


class Scheduler:
    """What `mine` of docs/api.md stands for: three rounds, one event, and a log of what it was told to do."""

    pause_s = 0

    def __init__(self, events: list[bytes]) -> None:
        self._rounds, self._events = 3, events
        self.told: list[str] = []

    def is_running(self) -> bool:
        self._rounds -= 1
        return self._rounds >= 0

    def events(self) -> list[bytes]:
        return self._events

    def requeue(self, workload: str, run: str, leave_by: str) -> None:
        self.told.append(f"{workload}/{run} leaves by {leave_by}")

    def start(self, workload: str, *, hosts: dict[str, int], protected_s: int) -> None:
        self.told.append(f"{workload} starts on {hosts}, protected {protected_s} s")

    def wait(self, pause_s: int) -> None:
        assert pause_s > 0


@pytest.mark.parametrize("name", ["loop", "follow"])
def test_the_loops_of_the_docs_run_as_they_stand_there(
    repository: Path, guarded: TestClient, own_ledger: Ledger, tokens: dict[Role, str], name: str
) -> None:
    """A cycle that starts the waiting work: each loop is told of it once, and asks before it starts anything."""
    blocks = re.findall(r"```python\n(.*?)```", (repository / "docs/api.md").read_text(), re.DOTALL)
    (source,) = (block for block in blocks if f"def {name}(" in block)
    namespace: dict[str, Any] = {"LedgerClient": LedgerClient}
    exec(compile(source, "docs/api.md", "exec"), namespace)

    def relay(request: httpx2.Request) -> httpx2.Response:
        path, headers = request.url.raw_path.decode(), dict(request.headers)
        answer = guarded.request(request.method, path, content=request.content, headers=headers)
        return httpx2.Response(answer.status_code, content=answer.content)

    now_s = seconds(own_ledger.clock.now())
    own_ledger.append(told(now_s, registered("h3", 16)))
    issue_cycle(own_ledger.engine, "alpha", at_s=now_s, clock=own_ledger.clock, calendar=Calendar())
    fact = submitted("later", account="org/vision/video", minimum_runtime_s=3600)
    mine = Scheduler([encode(id="later", source="scheduler", at_s=now_s, data=fact)])
    address, transport = "http://127.0.0.1:8080", httpx2.MockTransport(relay)
    if name == "loop":
        with LedgerClient(address, tokens[Role.SCHEDULER], transport=transport) as ledger:
            namespace[name](ledger, "alpha", mine)
    else:

        async def followed() -> None:
            async with AsyncLedgerClient(address, tokens[Role.SCHEDULER], transport=transport) as ledger:
                await namespace[name](ledger, "alpha", mine)

        asyncio.run(followed())
    assert mine.told
    assert len(mine.told) == len(set(mine.told))
    assert all("protected 3600 s" in line for line in mine.told)


def test_errors_keep_their_kind(client: LedgerClient) -> None:
    with pytest.raises(NotFound, match="delta"):
        client.layers(cluster="delta")
    with pytest.raises(Refused, match="period"):
        client.budget_vs_actual(cluster="alpha", period="soon")


def test_the_clients_types_are_the_documents(api: TestClient) -> None:
    """A field of the client that the API does not promise would be unknown for ever."""
    schemas = api.get("/openapi.json").json()["components"]["schemas"]
    named = {
        "Impact": "ImpactReadings",
        "Workload": "WorkloadStory",
        "Incident": "IncidentAnswer",
        "Account": "AccountAnswer",
    }
    for kind in (
        kind for module in (answers, outcomes, plans, records, stories) for kind in vars(module).values()
    ):
        if isinstance(kind, type) and issubclass(kind, answers.Answer) and kind is not answers.Answer:
            schema = schemas.get(named.get(kind.__name__, kind.__name__))
            if schema is not None:
                fields = {field.encode_name for field in msgspec.structs.fields(kind)}
                assert fields <= schema["properties"].keys(), kind.__name__
