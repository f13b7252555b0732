"""Who asks: proven once for each request, and held against the right that the operation names.

An operation without a right answers nobody: a new path is closed until somebody says whom it is for.
"""

from typing import Annotated, Any, Literal, Protocol

from fastapi import Depends, Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from gpuledger.api.context import Context
from gpuledger.api.rates import Limiter, place_of
from gpuledger.database.engine import looking_up, writing
from gpuledger.identity import store
from gpuledger.identity.caller import Caller
from gpuledger.identity.roles import Right, Role
from gpuledger.kernel.errors import Throttled, Unidentified

Mode = Literal["open", "token"]
"""``open``: who shows no token may read everything and change nothing. ``token``: nobody is let in without one."""

ANYONE = Caller("anyone", Role.AUDITOR)
"""Who is let in without a token: only ever served on the machine's own address."""

RIGHT = "x-right"
"""The key of the OpenAPI document under which an operation names the right that it needs."""

_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="A token of this ledger, as `gpuledger token create` prints it. Not needed where the API is open.",
)


def needs(right: Right) -> dict[str, Any]:
    """Return what a path's decorator takes to say which right it needs."""
    return {"openapi_extra": {RIGHT: right.value}}


class Provider(Protocol):
    """Somebody else who knows who people are."""

    def is_meant(self, text: str) -> bool:
        """Say whether a token has the form of this provider's."""
        ...

    def recognise(self, text: str) -> Caller:
        """Return who shows a token.

        Raises:
            Unidentified: When it is not good.
            Forbidden: When its bearer is nobody here.
        """
        ...


class Access:
    """The dependency of every path that is not for everybody; leaves the caller with the request.

    Args:
        context: The database and the present.
        mode: Whether a token is needed.
        provider: Whose identity tokens open the API too.
        limiter: How often each caller may ask; as often as they like without one.
    """

    def __init__(
        self, context: Context, mode: Mode, provider: Provider | None = None, limiter: Limiter | None = None
    ) -> None:
        self._context, self._mode, self._provider, self._limiter = context, mode, provider, limiter

    async def __call__(
        self,
        request: Request,
        response: Response,
        shown: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
    ) -> None:
        """Find out who asks, whether they may, and whether they did too often.

        Raises:
            Throttled: When they did. Who is not known is counted by address: guessing is no cheaper than asking.
            Unidentified: When a token is needed, and there is none, or one that is not good.
            Forbidden: When the caller's role has not got the right.
        """
        address = f"address {place_of(request.client.host if request.client else None)}"
        try:
            request.state.caller = caller = await self._identified(shown)
        except Unidentified:
            self._count(request, response, address)
            raise
        if caller is ANYONE:
            self._count(request, response, address)
        else:
            self._count(request, response, f"token {caller.token}" if caller.token else f"name {caller.name}")
        caller.require(_right(request))

    def _count(self, request: Request, response: Response, who: str) -> None:
        if self._limiter is None:
            return
        verdict = self._limiter.take(who)
        request.state.rate = told = self._limiter.headers(verdict)
        response.headers.update(told)
        if not verdict.allowed:
            rate = self._limiter.rate
            raise Throttled(
                f"{who.partition(' ')[0]} asks more than {rate.per_s} times a second",
                wait_s=verdict.wait_s,
                hint="wait as Retry-After says, then go on more slowly",
            )

    async def _identified(self, shown: HTTPAuthorizationCredentials | None) -> Caller:
        if shown is None:
            if self._mode == "open":
                return ANYONE
            raise Unidentified(
                "no token was sent",
                hint="send Authorization: Bearer TOKEN, made by gpuledger token create on the ledger's host",
            )
        # What may have to wait, for a provider or the database, has a thread.
        return await run_in_threadpool(self._recognised, shown.credentials)

    def _recognised(self, text: str) -> Caller:
        if self._provider is not None and self._provider.is_meant(text):
            return self._provider.recognise(text)
        now = self._context.clock.now()
        with looking_up(self._context.engine) as reader:
            caller, noteworthy = store.recognise(reader, text, now)
        if noteworthy and caller.token is not None:
            with writing(self._context.engine) as writer:
                store.note_use(writer, caller.token, now)
        return caller


async def caller_of(request: Request) -> Caller:
    """Return who was found to ask; nothing is waited for, and a thread would be."""
    caller: Caller = request.state.caller
    return caller


Asking = Annotated[Caller, Depends(caller_of)]
"""The caller, for a path that cuts its answer to what they reach."""


def _right(request: Request) -> Right:
    route = request.scope.get("route")
    named = (route.openapi_extra or {}) if isinstance(route, APIRoute) else {}
    return Right(named[RIGHT])
