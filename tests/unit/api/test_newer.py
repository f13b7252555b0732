"""Who waits is answered once there is news, at the latest when the time is over, and one looks for all."""

import asyncio
import time

from gpuledger.api.newer import Newer
from gpuledger.ledger.policy_status import Counted


class Policy:
    """Speaks when it is told to, and counts who looks and who asks."""

    def __init__(self) -> None:
        self.spoken, self.looked, self.asked = 0, 0, 0

    async def look(self) -> dict[str, Counted]:
        self.looked += 1
        return {"alpha": Counted(self.spoken, 0)}

    async def ask(self) -> int:
        self.asked += 1
        return self.spoken

    async def wait(self, newer: Newer, wait_s: float, after: int = 0) -> int:
        return await newer.answered("alpha", wait_s, self.ask, lambda told: told > after)


def test_news_ends_the_wait_of_all_and_few_looks_serve_many() -> None:
    policy = Policy()

    async def story() -> list[int]:
        newer = Newer(policy.look, every_s=0.02)
        waiting = [asyncio.create_task(policy.wait(newer, 5)) for _ in range(200)]
        await asyncio.sleep(0.1)
        policy.spoken = 1
        return await asyncio.gather(*waiting)

    began = time.monotonic()
    assert set(asyncio.run(story())) == {1}
    assert time.monotonic() - began < 5
    assert policy.looked < 200
    assert policy.asked == 400  # each once at first, and once when there was news


def test_without_news_the_time_is_over_and_nobody_asked_again() -> None:
    policy = Policy()
    assert asyncio.run(policy.wait(Newer(policy.look, every_s=0.01), 0.05)) == 0
    assert policy.asked == 1
    assert policy.looked >= 2


def test_who_does_not_wait_looks_at_nothing() -> None:
    policy = Policy()
    assert asyncio.run(policy.wait(Newer(policy.look), 0)) == 0
    assert (policy.asked, policy.looked) == (1, 0)


def test_news_that_are_there_are_told_at_once() -> None:
    policy = Policy()
    policy.spoken = 3
    assert asyncio.run(policy.wait(Newer(policy.look), 5, after=2)) == 3
    assert policy.looked == 1
