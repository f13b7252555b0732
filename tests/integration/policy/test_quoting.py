"""A quote from a ledger: when work would start, and whether it can be paid for."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from tests.integration.policy.stories import DAY, HOUR, NOON, World, event, small_cluster

from gpuledger.database.engine import reading
from gpuledger.events.budget import Granted
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.policy.quotes import Certainty, Request
from gpuledger.policy.quoting import Quoted, ask_quote

EARLY = NOON - 2100
"""4 of the 10 GPUs are free, and nobody waits."""


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    with small_cluster(database_url) as found:
        yield found


def ask(world: World, gpus: int, minimum_s: int = HOUR, *, account: str = "c/a", **keys: Any) -> Quoted:  # noqa: ANN401
    runtime_s, at_s, as_of = keys.pop("runtime_s", None), keys.pop("at_s", NOON), keys.pop("as_of", None)
    request = Request(account=account, gpus_milli=gpus * 1000, minimum_runtime_s=minimum_s, **keys)
    with reading(world.engine) as reader:
        return ask_quote(
            reader, "c", request, at_s=at_s, calendar=Calendar(), runtime_s=runtime_s, as_of=as_of
        )


def test_what_fits_starts_by_the_next_cycle(world: World) -> None:
    found = ask(world, 2, at_s=EARLY)
    assert (found.quote.starts_by_s, found.quote.certainty) == (EARLY + 60, Certainty.BOUND)
    assert found.quote.placement == {"h1": 2000}
    assert found.is_allocated


def test_what_gets_a_reservation_has_a_bound_and_what_does_not_an_estimate(world: World) -> None:
    head = ask(world, 10)
    # w-b4 starts with the cycle that decides, up to a minute later, and is protected for an hour from then on.
    assert (head.quote.certainty, head.quote.starts_by_s) == (Certainty.BOUND, NOON + 60 + HOUR + 180)
    last = ask(
        world, 9, account="c/b"
    )  # runs without a limit leave and wait again, each before it in their account
    assert (last.quote.certainty, last.quote.starts_by_s) == (None, None)
    assert "w-b8 of account c/b is ahead" in last.quote.reason
    world.cycle()
    behind = ask(world, 9, at_s=NOON + 60)
    assert (behind.quote.certainty, behind.quote.starts_by_s) == (Certainty.ESTIMATE, NOON + 15_480)
    assert "of account c/b is ahead" in behind.quote.reason


def test_a_model_is_known_in_any_spelling_and_an_unknown_one_has_no_date(world: World) -> None:
    assert ask(world, 2, gpu_model="X").quote.certainty is Certainty.BOUND
    never = ask(world, 2, gpu_model="y")
    assert (never.quote.starts_by_s, never.quote.certainty) == (None, None)
    assert "no hosts of model y" in never.quote.reason
    assert "Starts: nobody can say when." in list(never.lines())


def test_protection_is_told_up_to_the_cap_as_the_hold_is(world: World) -> None:
    found = ask(world, 2, 12 * HOUR, at_s=EARLY)
    assert found.funding.hold.gpu_ms == 2 * 8 * HOUR * 1000
    assert "Runs allocated: charged, and protected for 8 h." in list(found.lines())


def test_work_without_a_minimum_runtime_runs_unallocated(world: World) -> None:
    found = ask(world, 2, 0)
    assert not found.is_allocated
    assert list(found.lines())[-1] == "Runs unallocated: free, and preemptible from the outset."
    assert found.as_json()["funding"] is None


def test_the_text_and_the_document_say_the_same(world: World) -> None:
    found = ask(world, 2, runtime_s=3 * HOUR, at_s=EARLY)
    document = found.as_json()
    assert document["starts_by"] == "2027-01-15T11:26:00Z"
    assert document["class"] == "allocated"
    assert document["funding"]["whole"]["gpu_hours"] == "6.000"
    text = "\n".join(found.lines())
    assert "Starts by 2027-01-15T11:26:00Z (bound), when submitted before the next cycle." in text
    assert "finish inside the budget" in text


def test_the_past_has_the_budgets_that_the_books_had_then(world: World) -> None:
    """5 GPU-hours were granted an hour before, 100 more an hour after it is asked; the month's own are not enough."""
    grant: dict[str, Any] = {"cluster": "c", "period": "2027-01", "reason": "test", "by": "test"}
    asked_s = NOON + DAY
    for since_s, granted_hours in ((-HOUR, 5), (HOUR, 100)):
        world.clock.at = instant(asked_s + since_s)
        amount = granted_hours * HOUR * 1000
        world.take(event(f"g{granted_hours}", NOON, Granted(account="c/a", gpu_ms=amount, **grant)))

    def told(at_s: int, as_of: datetime | None = None) -> tuple[bool | None, str | None]:
        found = ask(world, 10, runtime_s=15 * DAY, at_s=at_s, as_of=as_of)
        assert found.funding.whole is not None
        return found.funding.whole.fits, found.as_json()["budgets_as_of"]

    assert told(asked_s) == (False, "2027-01-16T12:00:00Z")
    assert told(asked_s + HOUR) == (True, None), "the whole of a second counts, and nothing was booked since"
    assert told(asked_s, instant(asked_s + HOUR)) == (True, None)
    early = ask(world, 2)
    assert (early.funding.hold.fits, early.budgets_as_of_s) == (None, NOON)
    assert early.funding.hold.reason.startswith("Nothing was booked on c by 2027-01-15T12:00:00Z: --as-of")
    assert "Budgets are those that the books had at 2027-01-15T12:00:00Z." in list(early.lines())


def test_what_cannot_be_asked_is_refused(world: World) -> None:
    with pytest.raises(Refused, match="needs GPUs"):
        ask(world, 0)
    with pytest.raises(NotFound, match="c/nobody"):
        ask(world, 1, account="c/nobody")
