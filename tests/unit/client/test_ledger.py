"""The client against a scripted API: what it sends, what it makes of answers, how it fails."""

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal

import httpx2
import pytest
import stamina

from gpuledger.api.examples import EXAMPLES
from gpuledger.client import LedgerClient, Order
from gpuledger.kernel.errors import (
    Conflict,
    Corrupt,
    Forbidden,
    GpuledgerError,
    KeyReused,
    NotFound,
    Refused,
    Unavailable,
    Unidentified,
)

Handler = Callable[[httpx2.Request], httpx2.Response]


def _client(handler: Handler) -> LedgerClient:
    return LedgerClient("http://127.0.0.1:8080/", transport=httpx2.MockTransport(handler))


def _answering(operation: str, seen: list[httpx2.Request] | None = None) -> LedgerClient:
    def handler(request: httpx2.Request) -> httpx2.Response:
        if seen is not None:
            seen.append(request)
        return httpx2.Response(200, json=EXAMPLES[operation])

    return _client(handler)


@pytest.mark.parametrize("token", ["\ufeffgpl_x", "gpl_\N{EM DASH}", "gpl_x\ngpl_y", "gpl\u00a0"])
def test_a_token_that_no_header_can_hold_is_none_of_ours(token: str) -> None:
    with pytest.raises(Unidentified, match="no token has"):
        LedgerClient("http://127.0.0.1:8080", token)


def test_layers_are_typed_and_unknown_stays_none() -> None:
    seen: list[httpx2.Request] = []
    client = _answering("listLayers", seen)
    answer = client.layers("day", cluster="philly", from_=dt.date(2017, 10, 1), to=dt.date(2017, 11, 1))
    assert answer.rows[0].availability == Decimal("0.9800")
    assert answer.rows[0].utilisation.value is None
    assert answer.from_ == "2017-10-01T00:00:00Z"
    assert dict(seen[0].url.params) == {
        "by": "day",
        "cluster": "philly",
        "from": "2017-10-01",
        "to": "2017-11-01",
    }


def test_every_path_has_a_method() -> None:
    assert _answering("listClusters").clusters().clusters[0].cluster == "philly"
    assert _answering("listBooks").books().dead_letters == 0
    assert _answering("listBalances").balances(account="philly").balances[0].period == "2017-10"
    assert _answering("getCurrentAllocations").allocations("philly").supply_gpus == 2490
    assert _answering("getCurrentDirectives").directives("philly").starts[0].hosts == {"m12": 8000}
    assert _answering("getUsage").usage("account").rows[0].gpu_hours == Decimal("900.000")
    assert _answering("listMovements").movements("philly/ee9e8c").movements[0].code == "charge"
    assert _answering("listMovements").movements("philly/ee9e8c").limits[0].gpu_ms == 360_000_000
    assert _answering("listPeriods").periods(cluster="philly").periods[0].state == "open"
    assert _answering("getBudgetVersusActual").budget_vs_actual().rows[0].variance_credit_gpu_ms == 0


def test_orders_are_asked_for_after_a_cursor_and_typed() -> None:
    seen: list[httpx2.Request] = []
    answer = _answering("getCurrentDirectives", seen).directives("philly", after=8840, stale_after_s=60)
    assert dict(seen[0].url.params) == {"cluster": "philly", "after": "8840", "stale_after_s": "60"}
    assert (answer.cursor, answer.stale, answer.decided_at) == (8841, False, "2026-12-01T09:00:00Z")
    assert [(one.run, one.leave_by) for one in answer.preemptions] == [("1", "2026-12-01T09:01:00Z")]
    assert [one.workload for one in answer.protected] == ["8802"]


def test_an_account_keeps_its_slashes_and_hides_its_marks() -> None:
    seen: list[httpx2.Request] = []
    client = _answering("getBalance", seen)
    client.balance("philly/a%20b", period="2017-10")
    assert seen[0].url.raw_path == b"/v1/balances/philly/a%2520b?period=2017-10"


def test_instants_are_sent_in_utc_and_need_a_zone() -> None:
    seen: list[httpx2.Request] = []
    client = _answering("getUsage", seen)
    client.usage(as_of=dt.datetime(2026, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))))
    assert seen[0].url.params["as_of"] == "2026-01-01T00:00:00Z"
    with pytest.raises(Refused, match="no zone"):
        client.usage(as_of=dt.datetime(2026, 1, 1))  # noqa: DTZ001 - the point of the test


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, Unidentified),
        (403, Forbidden),
        (404, NotFound),
        (422, Refused),
        (409, Conflict),
        (503, Unavailable),
        (500, Corrupt),
    ],
)
def test_problems_become_our_errors_with_their_hint(status: int, kind: type[GpuledgerError]) -> None:
    body = {"type": "/problems/x", "title": "T", "status": status, "detail": "what", "hint": "do"}
    with pytest.raises(kind) as error:
        _client(lambda _: httpx2.Response(status, json=body)).clusters()
    assert type(error.value) is kind
    assert (error.value.message, error.value.hint) == ("what", "do")


def test_a_key_that_stands_for_another_order_is_no_conflict_to_retry() -> None:
    body = {"type": "/problems/key-reused", "title": "T", "status": 409, "detail": "what", "hint": "do"}
    with pytest.raises(KeyReused):
        _client(lambda _: httpx2.Response(409, json=body)).clusters()


def test_the_token_is_shown_each_time_and_stands_in_no_address() -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json=EXAMPLES["getCaller"])

    with LedgerClient("http://127.0.0.1:8080", "gpl_x_y", transport=httpx2.MockTransport(handler)) as client:
        assert client.me().clusters == ("philly",)
    assert seen[0].headers["authorization"] == "Bearer gpl_x_y"
    assert "gpl" not in str(seen[0].url)
    assert "authorization" not in _asked("getCaller", lambda plain: plain.me()).headers


ORDER = Order("philly/ee9e8c", 3_600_000, cluster="philly", period="2026-12", reason="a deadline")


def _asked(operation: str, question: Callable[[LedgerClient], object]) -> httpx2.Request:
    seen: list[httpx2.Request] = []
    question(_answering(operation, seen))
    (request,) = seen
    return request


def test_orders_carry_a_key_of_their_own_unless_one_is_given() -> None:
    first, second = (_asked("grant", lambda client: client.grant(ORDER)) for _ in range(2))
    assert json.loads(first.content) == {**ORDER._asdict()}
    keys = [request.headers["idempotency-key"] for request in (first, second)]
    assert len(set(keys)) == 2
    given = _asked("transfer", lambda client: client.transfer(ORDER, "philly/b", key="k1", dry_run=True))
    assert given.headers["idempotency-key"] == "k1"
    assert json.loads(given.content)["to"] == "philly/b"
    assert str(given.url).endswith("/v1/budget/transfers?dry_run=true")


def test_events_go_as_lines_and_an_attempt_is_admitted() -> None:
    sent = _asked("postEvents", lambda client: client.post_events([b'{"a": 1}', b"{}"]))
    assert (sent.content, sent.headers["content-type"]) == (b'{"a": 1}\n{}', "application/x-ndjson")
    assert _answering("postEvents").post_events([]).repeated == 1
    admitted = _answering("admit").admit("philly", "8851")
    assert (admitted.klass, admitted.protected_s) == ("allocated", 3600)
    assert _answering("grant").grant(ORDER).seq == 8843
    assert _answering("getWorkload").workload("a/b c", what_if=True).state == "waits"
    asked = _asked("getWorkload", lambda client: client.workload("a/b c", what_if=True))
    assert asked.url.raw_path == b"/v1/workloads/a/b%20c?what_if=true"


def test_an_order_whose_answer_was_lost_is_sent_again_under_its_key() -> None:
    keys = []

    def lost(request: httpx2.Request) -> httpx2.Response:
        keys.append(request.headers["idempotency-key"])
        if len(keys) == 1:
            raise httpx2.ReadError("reset", request=request)
        return httpx2.Response(200, json=EXAMPLES["grant"])

    with stamina.set_testing(True, attempts=3):
        assert _client(lost).grant(ORDER).applied
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_what_is_no_ledger_api_is_named() -> None:
    for answer in (
        httpx2.Response(200, text="<html>"),
        httpx2.Response(502, text="bad"),
        httpx2.Response(200, json={}),
    ):
        with pytest.raises(Unavailable, match="not the ledger API"):
            _client(lambda _, answer=answer: answer).clusters()  # type: ignore[misc]


def test_a_refused_connection_is_tried_again_then_named_with_the_command() -> None:
    tries = []

    def refuse(request: httpx2.Request) -> httpx2.Response:
        tries.append(request)
        raise httpx2.ConnectError("refused", request=request)

    with stamina.set_testing(True, attempts=3), pytest.raises(Unavailable) as error:
        _client(refuse).clusters()
    assert len(tries) == 3
    assert "gpuledger serve" in error.value.hint


def test_a_slow_answer_is_not_asked_for_again() -> None:
    tries = []

    def dawdle(request: httpx2.Request) -> httpx2.Response:
        tries.append(request)
        raise httpx2.ReadTimeout("slow", request=request)

    with pytest.raises(Unavailable):
        _client(dawdle).clusters()
    assert len(tries) == 1


@pytest.mark.parametrize("url", ["", "127.0.0.1:8080", "ftp://x", "http://", "http://x:port"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(Refused) as error:
        LedgerClient(url)
    assert "GPULEDGER_API_URL" in error.value.hint


def test_names_of_a_newer_api_are_ignored() -> None:
    body = {**EXAMPLES["listBooks"], "later": 1}
    with _client(lambda _: httpx2.Response(200, content=json.dumps(body))) as client:
        assert client.books().dead_letters == 0
