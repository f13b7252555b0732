"""A client whose API answers as it is told."""

from collections.abc import Callable

import httpx2

from gpuledger.api.examples import EXAMPLES
from gpuledger.client import LedgerClient, Order

ORDER = Order("philly/ee9e8c", 3_600_000, cluster="philly", period="2026-12", reason="a deadline")

Handler = Callable[[httpx2.Request], httpx2.Response]


def client_of(handler: Handler) -> LedgerClient:
    return LedgerClient("http://127.0.0.1:8080/", transport=httpx2.MockTransport(handler))


def answering(operation: str, seen: list[httpx2.Request] | None = None) -> LedgerClient:
    def handler(request: httpx2.Request) -> httpx2.Response:
        if seen is not None:
            seen.append(request)
        return httpx2.Response(200, json=EXAMPLES[operation])

    return client_of(handler)


def asked(operation: str, question: Callable[[LedgerClient], object]) -> httpx2.Request:
    seen: list[httpx2.Request] = []
    question(answering(operation, seen))
    (request,) = seen
    return request
