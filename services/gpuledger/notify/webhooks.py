"""Webhooks by the Standard Webhooks rules: signed, bounded in time, and led nowhere else."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import httpx2
from pydantic import SecretStr
from standardwebhooks import Webhook as Signer

from gpuledger.kernel.clock import seconds
from gpuledger.kernel.retries import retry_context
from gpuledger.notify.addresses import Place, place_of, refusal
from gpuledger.notify.recipients import Target, Webhook
from gpuledger.notify.sending import Message, Undelivered

TOTAL_S = 30.0
"""How long one delivery may take, all its tries included: a receiver that drips bytes holds nobody up for longer."""

_TIMEOUT = httpx2.Timeout(10, connect=4)
_ADDRESSES_MOST = 4
_TRIES = 3
_GONE = 410
_AGENT = "gpuledger"


class Resolve(Protocol):
    """Returns the addresses that a name stands for."""

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return them.

        Raises:
            OSError: When there are none.
        """
        ...


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses that a name stands for, as the system knows them.

    Raises:
        OSError: When there are none.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class _Again(Exception):  # noqa: N818 - a signal between two tries
    """A try failed in a way that another one soon may not."""


class WebhookSender:
    """Sends notices to programs.

    Args:
        resolve: Says which addresses a name stands for; another in tests.
        total_s: How long one delivery may take.
    """

    def __init__(self, *, resolve: Resolve = resolve, total_s: float = TOTAL_S) -> None:
        self._resolve = resolve
        self._total_s = total_s

    def __call__(self, target: Target, message: Message) -> None:
        """Bring a message to a webhook; it has arrived when the answer is of the 2xx.

        Raises:
            Undelivered: When it has not; final where the receiver says that it is gone (410).
        """
        assert isinstance(target.subscription, Webhook)  # noqa: S101 - the name of the target says so
        asyncio.run(self._bounded(target.subscription, target.secrets, message))

    async def _bounded(self, webhook: Webhook, secrets: Sequence[SecretStr], message: Message) -> None:
        place = place_of(webhook.url.get_secret_value())
        headers = signed(message, secrets) | {"Host": place.authority, "User-Agent": _AGENT}
        try:
            async with asyncio.timeout(self._total_s):
                async for attempt in retry_context(
                    on=_Again, attempts=_TRIES, timeout=None, wait_initial=0.2, wait_max=2.0, wait_jitter=0.2
                ):
                    with attempt:
                        await self._once(place, headers, message.body, webhook)
        except TimeoutError as error:
            raise Undelivered(f"no answer within {self._total_s:g} s") from error
        except _Again as error:
            raise Undelivered(str(error)) from error

    async def _once(self, place: Place, headers: dict[str, str], body: bytes, webhook: Webhook) -> None:
        fault = ""
        for address in await self._addresses(place, is_private=webhook.private):
            try:
                status = await _post(place, address, headers, body, webhook.ca_file)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                fault = type(error).__name__  # the next address of the name may do
            except httpx2.TransportError as error:
                raise _Again(f"cannot be reached: {type(error).__name__}") from error
            else:
                return _judge(status)
        raise _Again(f"cannot be reached: {fault}")

    async def _addresses(self, place: Place, *, is_private: bool) -> list[str]:
        try:
            found = list(dict.fromkeys(await self._resolve(place.host, place.port)))
        except OSError as error:
            raise _Again(f"its name is not known: {error.strerror or type(error).__name__}") from error
        if not found:
            raise _Again("its name stands for no address")
        for address in found:
            # One bad address is enough: whoever answers for the name could lead there at the next try.
            if (why := refusal(address, place, is_private_allowed=is_private)) is not None:
                raise Undelivered(why)
        return found[:_ADDRESSES_MOST]


async def _post(
    place: Place, address: str, headers: dict[str, str], body: bytes, ca_file: Path | None
) -> int:
    trusted = True if ca_file is None else ssl.create_default_context(cafile=ca_file)
    # Connected to is the address that was judged, not what the name stands for a moment later. A proxy would look the
    # name up anew, so none is used; and nobody is followed to where nobody has judged.
    async with (
        httpx2.AsyncClient(verify=trusted, trust_env=False, follow_redirects=False, timeout=_TIMEOUT) as http,
        http.stream(
            "POST",
            place.at(address),
            content=body,
            headers=headers,
            extensions={"sni_hostname": place.host},
        ) as answer,
    ):
        return answer.status_code  # of what else it says nothing is read


def _judge(status: int) -> None:
    if 200 <= status < 300:  # noqa: PLR2004 - what the 2xx are
        return
    if status == _GONE:
        raise Undelivered("answers 410: it is gone for good", is_final=True)
    if status >= 500 or status == 429:  # noqa: PLR2004 - its own fault, or too much of ours
        raise _Again(f"answers {status}")
    raise Undelivered(f"answers {status}" + (", and nobody is led elsewhere" if status < 400 else ""))  # noqa: PLR2004


def signed(message: Message, secrets: Sequence[SecretStr]) -> dict[str, str]:
    """Return the headers of a message: id, time of the attempt, and a signature by each secret.

    Args:
        message: What is sent.
        secrets: While one takes the place of another there are two, and a receiver may know either.
    """
    text = message.body.decode()
    signatures = [Signer(secret.get_secret_value()).sign(message.id, message.at, text) for secret in secrets]
    return {
        "Content-Type": "application/json",
        "webhook-id": message.id,
        "webhook-timestamp": str(seconds(message.at)),
        "webhook-signature": " ".join(signatures),
    }
