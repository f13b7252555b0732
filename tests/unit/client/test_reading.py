"""What an HTTP answer means to the client."""

import httpx2
import pytest

from gpuledger.client import outcomes
from gpuledger.client.asking import Ask
from gpuledger.client.reading import error_of, read
from gpuledger.kernel.errors import KeyReused, Unavailable

ASK = Ask(outcomes.TakenEvents, "POST", "/v1/events")


def test_an_answer_is_read_as_what_was_asked_for() -> None:
    body = {"events": 1, "accepted": 1, "repeated": 0, "later": True}
    assert read("http://x", ASK, httpx2.Response(200, json=body)).accepted == 1


def test_an_answer_of_another_shape_is_not_ours() -> None:
    with pytest.raises(Unavailable, match="http://x/v1/events is not the ledger API of this version"):
        read("http://x", ASK, httpx2.Response(200, json={"events": "many"}))


def test_an_error_is_told_by_status_and_type() -> None:
    body = {"type": "/problems/key-reused", "title": "T", "status": 409, "detail": "d", "hint": "h"}
    assert isinstance(error_of("http://x", "/", httpx2.Response(409, json=body)), KeyReused)
    assert isinstance(error_of("http://x", "/", httpx2.Response(409, text="no")), Unavailable)
