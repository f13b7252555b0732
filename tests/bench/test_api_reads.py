"""Balances and admissions are answered at half the rate of an endpoint that reads one row by its key.

Both are paths of the same server, in the same process, asked in turns over loopback by as many connections.
"""

from pathlib import Path

import msgspec
import pytest
from tests.bench.asking import Answers, Request, flood, get, in_turn, post
from tests.bench.bare_server import BARE, BARE_WITH_TOKEN
from tests.bench.scheduling import LEAVES, ROOT, STANDING, book_a_cluster, scheduler_token
from tests.bench.serving import serving
from tests.integration.ledger.books import CLUSTER, Ledger

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]

CONNECTIONS = 4
TURNS = {"short": 25, "full": 400}
TURN_S = 0.2
"""Short, so that the machine's moods meet both alike."""

RATE_MIN, P99_MAX = 0.5, 3.0


def _balances(token: str | None) -> list[Request]:
    return [get("balance", f"/v1/balances/{leaf}?cluster={CLUSTER}", token) for leaf in [*LEAVES, ROOT]]


def _admissions(token: str | None) -> list[Request]:
    bodies = [msgspec.json.encode({"cluster": CLUSTER, "workload": name}) for name in STANDING]
    return [post("admission", "/v1/admissions", body, "application/json", token) for body in bodies]


def _compare(port: int, bare: Request, asked: list[Request], test_form: str) -> tuple[float, float]:
    """Return how many of the requests per second of the bare endpoint there are, and how many times its p99."""
    for requests in ([bare], asked):  # what a process does only once
        flood(port, CONNECTIONS, 0.5, in_turn(requests))
    one, other = Answers(), Answers()
    for _ in range(TURNS[test_form]):
        for told, requests in ((one, [bare]), (other, asked)):
            told.add(flood(port, CONNECTIONS, TURN_S, in_turn(requests)))
    for told in (one, other):
        assert not told.refused, told.refused[:3]
    rate, tail = other.per_s() / one.per_s(), other.p(99) / one.p(99)
    print(
        f"\n{asked[0].name}: bare {one.per_s():,.0f}/s, p50 {one.p(50) * 1000:.1f} ms, p99 {one.p(99) * 1000:.1f} ms;"
        f" {other.per_s():,.0f}/s, p50 {other.p(50) * 1000:.1f} ms, p99 {other.p(99) * 1000:.1f} ms;"
        f" {rate:.2f} of its rate, at least {RATE_MIN} wanted;"
        f" p99 {tail:.1f} times its own, at most {P99_MAX} allowed"
    )
    return rate, tail


def test_a_balance_is_read_at_half_the_rate_of_a_row(ledger: Ledger, tmp_path: Path, test_form: str) -> None:
    """Who shows no token, as the bare endpoint asks for none."""
    book_a_cluster(ledger)
    with serving(ledger.url, tmp_path / "log") as port:
        rate, tail = _compare(port, get("bare", f"{BARE}/{CLUSTER}"), _balances(None), test_form)
    assert rate >= RATE_MIN
    assert tail <= P99_MAX


def test_so_it_is_for_who_shows_a_token_and_so_is_an_admission_asked_again(
    ledger: Ledger, tmp_path: Path, test_form: str
) -> None:
    """The bare endpoint is asked with the same token; against one that looks at none it is printed, not gated."""
    book_a_cluster(ledger)
    token = scheduler_token(ledger)
    with serving(ledger.url, tmp_path / "log", GPULEDGER_API_ACCESS="token") as port:
        for request in _admissions(token):
            flood(port, 1, 0.05, in_turn([request]))
        bare = get("bare", f"{BARE_WITH_TOKEN}/{CLUSTER}", token)
        found = [_compare(port, bare, asked, test_form) for asked in (_balances(token), _admissions(token))]
        print("against an endpoint that looks at no token:", end="")
        _compare(port, get("bare", f"{BARE}/{CLUSTER}"), _balances(token), test_form)
    for rate, tail in found:
        assert rate >= RATE_MIN
        assert tail <= P99_MAX
