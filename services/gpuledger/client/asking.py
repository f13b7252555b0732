"""One request of the client, described before anybody sends it; which transport carries it is not its concern."""

import datetime as dt
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar, overload

import msgspec

from gpuledger.client import answers
from gpuledger.kernel.errors import Refused

P = ParamSpec("P")
A = TypeVar("A", bound=answers.Answer)
Moment = dt.date | dt.datetime
Parameter = str | int | Moment | None


@dataclass(frozen=True, slots=True)
class Ask(Generic[A]):
    """A request.

    Args:
        kind: What its answer is read as.
        method: The HTTP method.
        path: The path, with what is odd in it escaped.
        params: The query.
        content: The body.
        headers: Headers besides those of every request.
    """

    kind: type[A]
    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def get(kind: type[A], path: str, **parameters: Parameter) -> Ask[A]:
    """Return a question; parameters that are None are left out."""
    return Ask(kind, "GET", path, texts(**parameters))


def texts(**parameters: Parameter) -> dict[str, str]:
    """Return parameters as a query has them; those that are None are left out."""
    return {name: _text(value) for name, value in parameters.items() if value is not None}


def post(
    kind: type[A], path: str, body: Mapping[str, object], *, key: str | None = None, dry_run: bool = False
) -> Ask[A]:
    """Return a command; its key, random unless given, stays the same however often it is sent."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": key or str(uuid.uuid4())}
    params = {"dry_run": "true"} if dry_run else {}
    return Ask(kind, "POST", path, params, msgspec.json.encode(body), headers)


class Waits(Protocol):
    """A client whose answers are waited for."""

    def ask(self, ask: Ask[A], /) -> A:
        """Send a request and return its answer."""
        ...


class Awaits(Protocol):
    """A client whose answers are awaited."""

    def ask(self, ask: Ask[A], /) -> Coroutine[Any, Any, A]:
        """Send a request; await its answer."""
        ...


class Asked(Generic[P, A]):
    """A method of every client, made of one description: returns the answer, or what can be awaited for it.

    Args:
        describe: Returns the request that its arguments mean.
    """

    def __init__(self, describe: Callable[P, Ask[A]]) -> None:
        self._describe = describe
        update_wrapper(self, describe)

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Waits, owner: type) -> Callable[P, A]: ...
    @overload
    def __get__(self, client: Awaits, owner: type) -> Callable[P, Coroutine[Any, Any, A]]: ...
    def __get__(
        self, client: Waits | Awaits | None, owner: type
    ) -> Self | Callable[P, A] | Callable[P, Coroutine[Any, Any, A]]:
        """Return the method of a client; of the class, itself."""
        if client is None:
            return self
        describe, ask = self._describe, client.ask

        def method(*args: P.args, **kwargs: P.kwargs) -> Any:  # noqa: ANN401 - as the overloads say
            return ask(describe(*args, **kwargs))

        update_wrapper(method, describe)
        return method

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Ask[A]:
        """Return the request that arguments mean, without sending it."""
        return self._describe(*args, **kwargs)


def _text(value: str | int | Moment) -> str:
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            raise Refused(f"instant {value} has no zone", hint="give it one, such as datetime.UTC")
        return value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, dt.date) else str(value)
