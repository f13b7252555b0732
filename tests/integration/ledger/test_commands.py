"""Orders: checked and booked under the book's lock, once per key."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.integration.ledger.books import CLUSTER, GPU_HOUR, HOUR, Ledger, run_of, told

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import AccountCreated, AdjustmentPosted, Granted, Transferred, Word
from gpuledger.kernel.errors import KeyReused, NotFound, Refused
from gpuledger.ledger.commands import Booked, Command, execute
from gpuledger.ledger.erasure import erase
from gpuledger.ledger.rebuild import check

PERIOD = "1970-01"


def grant(account: str, gpu_hours: int, **keys: Any) -> Granted:  # noqa: ANN401
    given = {
        "cluster": CLUSTER,
        "period": PERIOD,
        "gpu_ms": gpu_hours * GPU_HOUR,
        "reason": "test",
        "by": "test",
    }
    return Granted(account=account, **{**given, **keys})


def transfer(account: str, to: str, gpu_hours: int, **keys: Any) -> Transferred:  # noqa: ANN401
    given = {
        "cluster": CLUSTER,
        "period": PERIOD,
        "gpu_ms": gpu_hours * GPU_HOUR,
        "reason": "test",
        "by": "test",
    }
    return Transferred(account=account, to=to, **{**given, **keys})


def order(ledger: Ledger, command: Command, key: str = "k") -> Booked:
    with writing(ledger.engine) as writer:
        return execute(writer, command, key=key, clock=ledger.clock, calendar=ledger.calendar)


@pytest.fixture
def funded(ledger: Ledger) -> Ledger:
    """``org/vision`` has 100 GPU-hours and has used 8 of them; ``org/vision/a`` does not exist."""
    names = ("org", "org/vision", "org/speech")
    ledger.append(*(told(0, AccountCreated(account=name)) for name in names))
    ledger.append(*run_of(0, HOUR))
    order(ledger, grant("org/vision", 100), "first")
    return ledger


def available(ledger: Ledger, account: str) -> int:
    return ledger.balance(account, PERIOD).available_gpu_ms // GPU_HOUR


def test_a_transfer_takes_from_one_what_it_gives_to_the_other(funded: Ledger) -> None:
    booked = order(funded, transfer("org/vision", "org/speech", 30))
    assert (available(funded, "org/vision"), available(funded, "org/speech")) == (62, 30)
    assert booked.seq == funded.value("SELECT last_seq FROM ledger.books WHERE book = :book", book=CLUSTER)
    posted = funded.rows(
        "SELECT code, debit_pot, debit_account, credit_pot, credit_account, amount, debit_period, credit_period"
        " FROM ledger.postings WHERE seq = :seq AND book = :book", seq=booked.seq, book=CLUSTER,
    )  # fmt: skip
    assert posted == [
        ("transfer", "budget", "org/vision", "budget", "org/speech", 30 * GPU_HOUR * 1000, PERIOD, PERIOD)
    ]
    with reading(funded.engine) as reader:
        assert check(reader, funded.calendar).ok


@pytest.mark.parametrize(
    ("code", "most", "least", "said"),
    [
        ("charge", None, -8, r"8\.000 GPU-hours charged, net of credits"),
        ("credit", 8, 0, r"8\.000 GPU-hours charged, net of credits|0\.000 GPU-hours credited"),
        ("unallocated", None, 0, r"0\.000 GPU-hours unallocated use"),
    ],
)
def test_no_adjustment_makes_a_net_amount_negative(
    funded: Ledger, code: str, most: int | None, least: int, said: str
) -> None:
    """Fault 8: what is given back is no more than what was charged, and the net is never below zero."""
    given = {"account": "org/vision", "cluster": CLUSTER, "period": PERIOD, "reason": "test", "by": "test"}

    def adjust(gpu_hours: int) -> AdjustmentPosted:
        return AdjustmentPosted(code=code, gpu_ms=gpu_hours * GPU_HOUR, **given)  # type: ignore[arg-type]

    beyond = [least - 1] if most is None else [least - 1, most + 1]
    for number, gpu_hours in enumerate(beyond):
        with pytest.raises(Refused, match=said):
            order(funded, adjust(gpu_hours), f"too much {number}")
    for number, gpu_hours in enumerate(filter(None, [least, most])):
        order(funded, adjust(gpu_hours), f"as much {number}")
    if most is not None:
        with pytest.raises(Refused, match=r"0\.000 GPU-hours charged, net of credits"):
            order(funded, adjust(1), "once more")
        order(funded, adjust(-most), "and back")
    with reading(funded.engine) as reader:
        assert check(reader, funded.calendar).ok


def test_nobody_gives_more_than_is_left(funded: Ledger) -> None:
    with pytest.raises(Refused, match=r"has 92\.000 GPU-hours left on alpha in 1970-01, not 93\.000"):
        order(funded, transfer("org/vision", "org/speech", 93))
    order(funded, transfer("org/vision", "org/speech", 92))
    with pytest.raises(Refused, match=r"has 0\.000 GPU-hours left"):
        order(funded, transfer("org/vision", "org/speech", 1), "k2")


REFUSED: dict[str, tuple[Command, str]] = {
    "itself": (transfer("org/vision", "org/vision", 1), "would give to itself"),
    "an inner giver": (transfer("org", "org/vision", 1), "'org' is an inner node"),
    "an inner receiver": (transfer("org/vision", "org", 1), "'org' is an inner node"),
    "no such period": (grant("org/vision", 1, period="1970-13"), "not of the form YYYY-MM"),
    "a limit on a leaf": (grant("org/vision", 1, limit=True), "has become a leaf"),
    "a grant to an inner account": (grant("org", 1), "has become an inner account"),
    "an expiry within a day": (
        grant("org/vision", 1, expires_at=dt.datetime(1970, 1, 20, 6, tzinfo=dt.UTC)),
        "is not the beginning of a day in UTC",
    ),
    "a rollover that is no rule": (grant("org/vision", 1, rollover="half"), "'half' is no rule"),
    "a rollover in another spelling": (grant("org/vision", 1, rollover="max 1.0"), "not in its one spelling"),
    "a priority out of bounds": (grant("org/vision", 1, priority=10**9 + 1), "priority: 1000000001 is out"),
    "nothing granted": (grant("org/vision", 0), "moves nothing"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused_and_leaves_no_trace(funded: Ledger, what: str) -> None:
    command, expected = REFUSED[what]
    before = funded.rows("SELECT book, last_seq, head FROM ledger.books ORDER BY 1")
    with pytest.raises(Refused, match=expected):
        order(funded, command)
    assert funded.rows("SELECT book, last_seq, head FROM ledger.books ORDER BY 1") == before


@pytest.mark.parametrize(
    "command",
    [
        grant("org/visoin", 1),
        transfer("org/vision", "org/spech", 1),
        transfer("org/vision", "org/speech", 1, cluster="beta"),
        grant("~", 1),
    ],
)
def test_what_does_not_exist_is_not_found(funded: Ledger, command: Command) -> None:
    with pytest.raises(NotFound):
        order(funded, command)


def test_a_key_is_booked_once_and_answered_alike(funded: Ledger) -> None:
    first = order(funded, transfer("org/vision", "org/speech", 92))
    again = order(funded, transfer("org/vision", "org/speech", 92))
    assert (again.seq, again.recorded_at, first.repeated, again.repeated) == (
        first.seq, first.recorded_at, False, True,
    )  # fmt: skip
    assert available(funded, "org/speech") == 92


def test_a_key_with_another_body_is_refused_and_says_what_it_stands_for(funded: Ledger) -> None:
    order(funded, transfer("org/vision", "org/speech", 5))
    for other in (transfer("org/vision", "org/speech", 6), grant("org/vision", 5)):
        with pytest.raises(KeyReused) as refused:
            order(funded, other)
        assert "account org/vision, to org/speech, period 1970-01, gpu_ms 18000000" in refused.value.hint
    assert available(funded, "org/speech") == 5


def test_a_retry_by_another_person_is_the_same_order_and_with_another_reason_it_is_none(
    funded: Ledger,
) -> None:
    first = order(funded, transfer("org/vision", "org/speech", 5, by="ada", reason="she asked"))
    again = order(funded, transfer("org/vision", "org/speech", 5, by="grace", reason="she asked"))
    assert (again.seq, again.repeated) == (first.seq, True)
    for reason in ("he asked", Word.TRANSFERRED, "(aside)"):
        with pytest.raises(KeyReused):
            order(funded, transfer("org/vision", "org/speech", 5, by="ada", reason=reason))
    assert available(funded, "org/speech") == 5


def test_an_order_whose_reason_was_erased_is_answered_alike_whatever_reason_a_retry_gives(
    funded: Ledger,
) -> None:
    first = order(funded, transfer("org/vision", "org/speech", 5, by="ada", reason="she asked"))
    with writing(funded.engine) as writer:
        assert erase(writer, "ada").texts == 1
    for reason in ("she asked", "he asked"):
        again = order(funded, transfer("org/vision", "org/speech", 5, by="ada", reason=reason))
        assert (again.seq, again.recorded_at, again.repeated) == (first.seq, first.recorded_at, True)
    for other in (
        transfer("org/vision", "org/speech", 5, reason=Word.TRANSFERRED),
        transfer("org/vision", "org/speech", 6, reason="she asked"),
    ):
        with pytest.raises(KeyReused):
            order(funded, other)
    assert available(funded, "org/speech") == 5


def test_a_programs_word_is_compared_after_an_erasure_too(funded: Ledger) -> None:
    order(funded, grant("org/speech", 5, by="ada", reason=Word.GRANTED))
    with writing(funded.engine) as writer:
        assert erase(writer, "ada").texts == 0
    assert order(funded, grant("org/speech", 5, by="ada", reason=Word.GRANTED)).repeated
    for reason in ("she asked", Word.BUDGET_FILE, "(aside)"):
        with pytest.raises(KeyReused):
            order(funded, grant("org/speech", 5, by="ada", reason=reason))


def test_a_refused_command_may_be_tried_again_under_its_key(funded: Ledger) -> None:
    command = transfer("org/speech", "org/vision", 1)
    with pytest.raises(Refused):
        order(funded, command)
    order(funded, grant("org/speech", 1), "more")
    assert not order(funded, command).repeated


def test_fifty_threads_with_one_key_book_one_row_and_get_one_answer(funded: Ledger) -> None:
    command = transfer("org/vision", "org/speech", 30)
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: order(funded, command, "one"), range(50)))
    assert len({(a.seq, a.recorded_at) for a in answers}) == 1
    assert [a.repeated for a in answers].count(False) == 1
    assert available(funded, "org/speech") == 30


def test_fifty_threads_never_overdraw_the_giver(funded: Ledger) -> None:
    def attempt(number: int) -> bool:
        try:
            order(funded, transfer("org/vision", "org/speech", 10), f"k{number}")
        except Refused:
            return False
        return True

    with ThreadPoolExecutor(50) as pool:
        assert sum(pool.map(attempt, range(50))) == 9
    assert (available(funded, "org/vision"), available(funded, "org/speech")) == (2, 90)


def test_what_has_lapsed_is_not_there_to_be_given(funded: Ledger) -> None:
    lapsed = dt.datetime(1970, 1, 20, tzinfo=dt.UTC)
    order(funded, grant("org/vision", 500, expires_at=lapsed), "lot")
    left = 100  # what was used was used of what lapses first
    with pytest.raises(Refused, match="left"):
        order(funded, transfer("org/vision", "org/speech", left + 1), "too much")
    order(funded, transfer("org/vision", "org/speech", left), "what is left")
    assert available(funded, "org/vision") == 0
