"""One description of a request makes a method of every client."""

import asyncio
import datetime as dt
import inspect
from typing import Any

import pytest

from gpuledger.client import LedgerClient, outcomes, questions
from gpuledger.client.asking import Ask, Asked, get, post
from gpuledger.kernel.errors import Refused

CALLER = outcomes.WhoAmI(name="n", role="admin", rights=(), subtree=None, clusters=(), token=None)


class Waiting:
    """Answers at once, and keeps what it was asked."""

    who = Asked(questions.me)
    told = Asked(questions.books)

    def __init__(self) -> None:
        self.asked: list[Ask[Any]] = []

    def ask(self, ask: Ask[Any], /) -> Any:  # noqa: ANN401 - whatever was asked for
        self.asked.append(ask)
        return CALLER


class Awaiting(Waiting):
    """The same when it is awaited."""

    async def ask(self, ask: Ask[Any], /) -> Any:  # noqa: ANN401 - likewise
        return super().ask(ask)


def test_who_waits_gets_the_answer_and_who_awaits_gets_it_later() -> None:
    waiting, awaiting = Waiting(), Awaiting()
    assert waiting.who() is CALLER
    later = awaiting.who()
    assert awaiting.asked == []
    assert asyncio.run(later) is CALLER
    assert waiting.asked == awaiting.asked == [questions.me()]


def test_a_method_reads_as_its_description() -> None:
    assert inspect.signature(LedgerClient.balance) == inspect.signature(questions.balance)
    assert LedgerClient.balance.__doc__ == questions.balance.__doc__
    assert Waiting().told.__doc__ == questions.books.__doc__
    assert LedgerClient.me().path == "/v1/me"


def test_a_command_keeps_its_key_and_a_question_leaves_out_what_is_not_said() -> None:
    kind = outcomes.WhoAmI
    one, other = post(kind, "/x", {"a": 1}), post(kind, "/x", {"a": 1})
    assert one.headers["Idempotency-Key"] != other.headers["Idempotency-Key"]
    assert post(kind, "/x", {}, key="k", dry_run=True) == Ask(
        kind, "POST", "/x", {"dry_run": "true"}, b"{}", {"Content-Type": "application/json", "Idempotency-Key": "k"}
    )  # fmt: skip
    assert get(kind, "/x", a=None, b=1).params == {"b": "1"}


def test_an_instant_without_a_zone_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(Refused, match="no zone"):
        Waiting().told(as_of=dt.datetime(2026, 1, 1))  # noqa: DTZ001 - the point of the test
