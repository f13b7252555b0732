"""Waiting for a newer word of the policy: any number of requests wait, and one query for all of them looks.

Nobody who waits holds a thread or a connection, and nothing runs while nobody waits.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from gpuledger.api.context import Context
from gpuledger.database.engine import reading
from gpuledger.ledger import policy_status
from gpuledger.ledger.policy_status import Counted

Found = TypeVar("Found")

WAIT_MAX_S = 5
"""Less than a server that is to end waits for answers that were begun: who waits is answered, not cut off."""

LOOK_EVERY_S = 0.25


class Newer:
    """Says when the policy has spoken anew of a cluster.

    Args:
        look: Returns how often it has spoken of each.
        every_s: How often that is asked, whoever waits.
    """

    def __init__(
        self, look: Callable[[], Awaitable[Mapping[str, Counted]]], every_s: float = LOOK_EVERY_S
    ) -> None:
        self._look, self._every_s = look, every_s
        self._seen: Mapping[str, Counted] = {}
        self._seen_s = -every_s
        self._turn = asyncio.Lock()

    async def answered(
        self,
        cluster: str,
        wait_s: float,
        ask: Callable[[], Awaitable[Found]],
        is_news: Callable[[Found], bool],
    ) -> Found:
        """Ask, and while there is no news, ask again each time that the policy has spoken; at last after ``wait_s``."""
        if wait_s <= 0:
            return await ask()
        until_s = time.monotonic() + wait_s
        known = await self._counted(cluster)  # before the question: what comes in between is seen below
        found = await ask()
        while not is_news(found) and (left_s := until_s - time.monotonic()) > 0:
            await asyncio.sleep(min(self._every_s, left_s))
            counted = await self._counted(cluster)
            if counted != known:
                known, found = counted, await ask()
        return found

    async def _counted(self, cluster: str) -> Counted | None:
        async with self._turn:  # of all who wait one looks
            if time.monotonic() - self._seen_s >= self._every_s:
                self._seen = await self._look()
                self._seen_s = time.monotonic()
            return self._seen.get(cluster)


def of_ledger(context: Context) -> Newer:
    """Return one that looks into the context's database."""

    def look() -> Mapping[str, Counted]:
        with reading(context.engine) as reader:
            return policy_status.counted(reader)

    async def in_a_thread() -> Mapping[str, Counted]:
        return await run_in_threadpool(look)

    return Newer(in_a_thread)
