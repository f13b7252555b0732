"""Whether work can be paid for, before it is submitted: as an admission would answer."""

from collections.abc import Iterator

import pytest
from tests.integration.ledger.books import CLUSTER, GPU_HOUR, HOUR, Ledger, at, granted, run_of, told
from tests.integration.ledger.test_admission import hard, order

from gpuledger.database.engine import reading
from gpuledger.events.budget import AccountCreated
from gpuledger.policy.funding import Funding, Seen, Work, funding

NOW_S = at("2026-11-15T12:00:00Z")
EDGE_S = at("2026-12-01T00:00:00Z")


@pytest.fixture
def vision(database_url: str) -> Iterator[Ledger]:
    """Of its 100 GPU-hours of November org/vision used 64."""
    ledger = Ledger(database_url)
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    ledger.append(told(0, granted("org/vision", "2026-11", 100 * GPU_HOUR)))
    ledger.append(*run_of(at("2026-11-10T00:00:00Z"), at("2026-11-10T08:00:00Z")))
    yield ledger
    ledger.engine.dispose()


def ask(book: Ledger, hours: int, *, runtime_h: int | None = None, starts_s: int = NOW_S) -> Funding:
    runtime_s = None if runtime_h is None else runtime_h * HOUR
    work = Work("org/vision", 1000, None, starts_s, hours * HOUR, runtime_s)
    with reading(book.engine) as reader:
        return funding(Seen(reader, CLUSTER, NOW_S, book.calendar), work)


def test_a_hard_account_is_told_whether_the_hold_fits_and_whether_it_can_finish(vision: Ledger) -> None:
    hard(vision)
    found = ask(vision, 8, runtime_h=37)
    assert found.is_hard
    assert (found.hold.fits, found.hold.gpu_ms) == (True, 8 * GPU_HOUR)
    assert found.whole is not None
    assert not found.whole.fits
    assert (
        "org/vision is hard and has 36.000 GPU-hours left in 2026-11; 37.000 are needed" in found.whole.reason
    )
    exactly = ask(vision, 8, runtime_h=36).whole
    assert exactly is not None
    assert exactly.fits


def test_a_soft_account_is_told_how_far_it_is_overdrawn(vision: Ledger) -> None:
    found = ask(vision, 8, runtime_h=37)
    assert not found.is_hard
    assert found.hold.fits
    assert found.whole is not None
    assert not found.whole.fits
    assert "36.000 GPU-hours left" in found.whole.reason
    assert "soft" in found.whole.reason


def test_each_period_pays_for_its_part(vision: Ledger) -> None:
    found = ask(vision, 8, starts_s=EDGE_S - 4 * HOUR)
    assert (found.hold.gpu_ms, found.hold.fits) == (8 * GPU_HOUR, None)
    assert found.hold.reason == "2026-12 is not open yet: what is granted then is not known."
    vision.append(told(1, granted("org/vision", "2026-12", 3 * GPU_HOUR)))
    known = ask(vision, 8, starts_s=EDGE_S - 4 * HOUR).hold
    assert known.fits is False
    assert known.reason.startswith("org/vision has 3.000 GPU-hours left in 2026-12, and 4.000 are needed.")


def test_a_period_that_began_without_a_grant_is_no_matter_of_waiting(vision: Ledger) -> None:
    past = ask(vision, 8, starts_s=at("2026-10-15T00:00:00Z")).hold
    assert past.fits is False
    assert past.reason.startswith("org/vision was granted nothing for 2026-10")


def test_nothing_needs_nothing(vision: Ledger) -> None:
    hard(vision)
    assert ask(vision, 0).hold.fits
