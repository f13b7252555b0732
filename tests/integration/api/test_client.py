"""The client against the real API: every field that it reads is sent."""

import datetime as dt
from collections.abc import Iterator

import httpx2
import msgspec
import pytest
from fastapi.testclient import TestClient
from tests.integration.ledger.books import Ledger, submitted

from gpuledger.client import LedgerClient, Order, answers, outcomes, stories
from gpuledger.events.envelope import encode
from gpuledger.identity.roles import Role
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import Forbidden, NotFound, Refused


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


def test_errors_keep_their_kind(client: LedgerClient) -> None:
    with pytest.raises(NotFound, match="delta"):
        client.layers(cluster="delta")
    with pytest.raises(Refused, match="period"):
        client.budget_vs_actual(cluster="alpha", period="soon")


def test_the_clients_types_are_the_documents(api: TestClient) -> None:
    """A field of the client that the API does not promise would be unknown for ever."""
    schemas = api.get("/openapi.json").json()["components"]["schemas"]
    named = {"Impact": "ImpactReadings", "Workload": "WorkloadStory"}
    for kind in (kind for module in (answers, outcomes, stories) for kind in vars(module).values()):
        if isinstance(kind, type) and issubclass(kind, answers.Answer) and kind is not answers.Answer:
            schema = schemas.get(named.get(kind.__name__, kind.__name__))
            if schema is not None:
                fields = {field.encode_name for field in msgspec.structs.fields(kind)}
                assert fields <= schema["properties"].keys(), kind.__name__
