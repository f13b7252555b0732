"""Events over HTTP are those of a stream: taken once, refused with a place, from who speaks for the cluster."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from tests.integration.ledger.books import Ledger, granted, registered

from gpuledger.api.app import create_app
from gpuledger.api.examples import EXAMPLES
from gpuledger.api.limits import BYTES_MAX
from gpuledger.api.routes.events import EVENTS_MAX, FORMS, LINES, MANY, ONE, pieces
from gpuledger.events.budget import PolicyChanged
from gpuledger.events.decision import DecisionMade
from gpuledger.events.envelope import encode
from gpuledger.events.registry import Fact
from gpuledger.identity.roles import Role
from gpuledger.ingest.importer import LedgerSink
from gpuledger.streams.files import FileBroker
from gpuledger.streams.topics import SCHEDULER_EVENTS

Shown = Callable[[Role], dict[str, str]]


def event(fact: Fact, name: str) -> bytes:
    return encode(id=name, source="scheduler/alpha", at_s=0, data=fact)


def host(name: str, cluster: str = "alpha") -> bytes:
    return event(registered(name, 8, cluster=cluster), f"{name} of {cluster}")


@pytest.fixture
def post(guarded: TestClient, shown: Shown) -> Callable[..., Response]:
    def post(body: bytes, form: str = LINES, role: Role = Role.SCHEDULER) -> Response:
        return guarded.post("/v1/events", content=body, headers={**shown(role), "Content-Type": form})

    return post


def hosts(ledger: Ledger) -> list[str]:
    return [name for (name,) in ledger.rows("SELECT host FROM ledger.hosts WHERE book = 'alpha' ORDER BY 1")]


def test_one_a_list_and_lines_are_taken(own_ledger: Ledger, post: Callable[..., Response]) -> None:
    listed = b"[" + b",".join((host("h4"), host("h5"))) + b"]"
    for body, form, events, fresh in (
        (host("h2"), ONE, 1, 1),
        (host("h3"), "application/json", 1, 1),
        (listed, MANY, 2, 2),
        (b" " + listed, "application/json; charset=utf-8", 2, 0),
        (b"\n".join((host("h6"), b"", host("h7"))) + b"\r\n", LINES, 2, 2),
    ):
        answer = post(body, form)
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"events": events, "accepted": fresh, "repeated": events - fresh}
    assert hosts(own_ledger) == [f"h{n}" for n in range(1, 8)]


def test_a_retry_changes_nothing(own_ledger: Ledger, post: Callable[..., Response]) -> None:
    assert post(host("h2")).json() == {"events": 1, "accepted": 1, "repeated": 0}
    assert EXAMPLES["postEvents"].keys() == post(host("h2")).json().keys()
    before = own_ledger.digest()
    assert post(b"\n".join((host("h2"), host("h2")))).json() == {"events": 2, "accepted": 0, "repeated": 2}
    assert own_ledger.digest() == before


def test_where_one_cannot_be_read_none_is_taken(own_ledger: Ledger, post: Callable[..., Response]) -> None:
    wrong = json.loads(host("h3"))
    wrong["data"]["gpus"] = "eight"
    answer = post(b"\n".join((host("h2"), json.dumps(wrong).encode(), b"{}")))
    assert answer.status_code == 422
    assert [(e["pointer"], e["code"]) for e in answer.json()["errors"]] == [
        ("/1", "bad-field"), ("/2", "not-an-event"),
    ]  # fmt: skip
    assert "none was taken" in answer.json()["hint"]
    assert hosts(own_ledger) == ["h1"]


@pytest.mark.parametrize("body", [b"", b"[]", b"[1", b"nonsense", b"\xff\xfe", b"[" * 5000])
@pytest.mark.parametrize("form", FORMS)
def test_bytes_that_are_no_events_are_refused(post: Callable[..., Response], body: bytes, form: str) -> None:
    answer = post(body, form)
    nothing_said = not body if form == LINES else body == b"[]" and form in (MANY, "application/json")
    assert answer.status_code == (200 if nothing_said else 422), answer.text


def test_other_forms_and_too_many(post: Callable[..., Response]) -> None:
    assert post(host("h2"), "text/plain").status_code == 415
    assert post(host("h2"), "").status_code == 415
    assert len(pieces(b"{}\n" * EVENTS_MAX, LINES)) == EVENTS_MAX
    assert post(b"{}\n" * (EVENTS_MAX + 1)).status_code == 413


def test_events_may_be_many_and_an_order_is_short(
    guarded: TestClient, shown: Shown, post: Callable[..., Response]
) -> None:
    assert post(host("h2") + b"\n" * BYTES_MAX).status_code == 200
    headers = shown(Role.ADMIN) | {"Content-Type": "application/json"}
    for path in ("/v1/budget/grants", "/v1/budget/transfers", "/v1/admissions"):
        answer = guarded.post(path, content=b" " * (BYTES_MAX + 1), headers=headers)
        assert answer.status_code == 413, answer.text


def test_a_scheduler_speaks_for_its_clusters_and_orders_nothing(
    own_ledger: Ledger, post: Callable[..., Response]
) -> None:
    order = event(granted("org/speech", "2026-12", 1), "grant")
    zone = event(PolicyChanged(policy="settings", settings={"quantum_s": 60}, by="x", reason="x"), "policy")
    for body in (host("h2", "beta"), host("h2") + b"\n" + host("h2", "beta"), order, zone):
        answer = post(body)
        assert answer.status_code == 403, answer.text
    assert hosts(own_ledger) == ["h1"]
    assert post(order, role=Role.ADMIN).status_code == 200
    assert post(host("h2", "beta"), role=Role.ADMIN).status_code == 200


def test_an_order_that_the_organisations_book_cannot_take_is_refused_with_its_reason(
    own_ledger: Ledger, post: Callable[..., Response]
) -> None:
    before = own_ledger.rows("SELECT count(*) FROM ledger.journal WHERE book = '~org'")
    zone = PolicyChanged(policy="organisation", timezone="Asia/Tokyo", period="month", by="x")
    cap = PolicyChanged(policy="settings", settings={"protection_cap_s": 5}, by="x")
    for order, told in ((zone, "Asia/Tokyo differs from UTC"), (cap, "exceeds the protection cap of 5 s")):
        answer = post(event(order, told), role=Role.ADMIN)
        assert answer.status_code == 422, answer.text
        assert told in answer.json()["detail"]
    assert own_ledger.rows("SELECT count(*) FROM ledger.journal WHERE book = '~org'") == before


def test_nobody_writes_what_only_the_ledger_writes(post: Callable[..., Response]) -> None:
    decision = DecisionMade(
        cluster="alpha", workload="w", attempt=1, account="org/speech", gpus_milli=1, klass="allocated",
        hold_gpu_ms=1, reason="x", seen_seq=1,
    )  # fmt: skip
    answer = post(event(decision, "forged"), role=Role.ADMIN)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["code"] == "own-type"


@pytest.mark.parametrize("role", [Role.SCHEDULER, Role.ADMIN])
def test_nobody_speaks_in_the_ledgers_own_name(
    own_ledger: Ledger, post: Callable[..., Response], role: Role
) -> None:
    """Otherwise a sender could take the key of an order, or the identity of a tick, before the ledger does."""
    for source in ("gpuledger/commands", "gpuledger/ticks"):
        forged = encode(id="next", source=source, at_s=0, data=registered("h2", 8, cluster="alpha"))
        assert post(forged, role=role).status_code == 403
    assert hosts(own_ledger) == ["h1"]


def test_events_that_wait_hold_no_thread(
    own_ledger: Ledger, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More senders than the server has threads wait for one that is slow; others are answered meanwhile."""
    begun, go_on = Event(), Event()
    take = LedgerSink.take

    def slow(*arguments: Any) -> Any:  # noqa: ANN401 - as it is given
        begun.set()
        assert go_on.wait(30)
        return take(*arguments)

    monkeypatch.setattr(LedgerSink, "take", slow)
    app = create_app(own_ledger.engine, own_ledger.clock, mode="token")
    headers = {**shown(Role.SCHEDULER), "Content-Type": LINES}
    senders = 45  # the server has forty threads
    with TestClient(app) as client, ThreadPoolExecutor(senders + 1) as pool:
        posted = [
            pool.submit(client.post, "/v1/events", content=host(f"h{n}"), headers=headers)
            for n in range(2, 2 + senders)
        ]
        try:
            assert begun.wait(30)
            time.sleep(0.5)  # until the others wait behind it
            asked = pool.submit(client.get, "/v1/me", headers=shown(Role.SCHEDULER))
            assert asked.result(timeout=20).status_code == 200
        finally:
            go_on.set()
        assert {answer.result(timeout=30).status_code for answer in posted} == {200}
    assert len(hosts(own_ledger)) == 1 + senders


def test_with_a_broker_events_go_through_it(own_ledger: Ledger, tmp_path: Path, shown: Shown) -> None:
    broker = FileBroker(tmp_path)
    app = create_app(own_ledger.engine, own_ledger.clock, mode="token", broker=broker)
    headers = {**shown(Role.SCHEDULER), "Content-Type": LINES}
    with TestClient(app) as client:
        answer = client.post("/v1/events", content=host("h2"), headers=headers)
    assert answer.json() == {"events": 1, "accepted": 1, "repeated": 0}
    assert hosts(own_ledger) == ["h1"]
    subscriber = broker.subscriber(SCHEDULER_EVENTS)
    subscriber.assign(subscriber.first_positions(list(broker.partitions(SCHEDULER_EVENTS))))
    assert [record.value for record in subscriber.poll(10, 1)] == [host("h2")]
