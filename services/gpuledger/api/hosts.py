"""This machine's own names: the only ones under which an open API answers.

A browser lets a page read what comes from the page's own name, and whoever owns a name may have it lead to 127.0.0.1.
Such a page would otherwise read the ledger of whoever opens it.
"""

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gpuledger.api import problems

_MISDIRECTED = 421


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine's own, which nobody else reaches; other names may lead anywhere."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class OwnNames:
    """ASGI middleware: end a request that was sent to another name.

    Args:
        app: What answers the others.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or is_loopback(_named(Headers(scope=scope).get("host", ""))):
            await self._app(scope, receive, send)
            return
        refusal = problems.answer(
            scope["path"],
            problems.OTHER,
            "the API is open, and answers to this machine's own names alone",
            status=_MISDIRECTED,
            hint="ask 127.0.0.1 or localhost, or set GPULEDGER_API_ACCESS=token and hand out tokens",
        )
        await refusal(scope, receive, send)


def _named(host: str) -> str:
    """Return the host of a header without its port; nothing when it cannot be read."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
