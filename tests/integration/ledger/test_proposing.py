"""Proposals: made, discussed and decided under the lock of their book, once per key."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from tests.integration.ledger.books import CLUSTER, GPU_HOUR, HOUR, NOON, Ledger, registered, run_of, told

from gpuledger.database.engine import reading, writing
from gpuledger.events import proposal
from gpuledger.events.budget import AccountCreated, Granted
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import Conflict, Forbidden, KeyReused, NotFound, Refused
from gpuledger.ledger import queries
from gpuledger.ledger.audit import verify
from gpuledger.ledger.commands import Booked, execute
from gpuledger.ledger.erasure import erase
from gpuledger.ledger.proposals import Proposal, State, Step, proposal_of, proposals
from gpuledger.ledger.proposing import (
    CHANGES_MAX,
    COMMENTS_OWN_MAX,
    PENDING_OWN_MAX,
    carry_out,
    check_proposed,
    name_for,
    take,
)
from gpuledger.ledger.rebuild import check

PERIOD = "2026-12"
NAME = "p-000000000001"


def split(**shares: int) -> proposal.Proposed:
    """Ada proposes shares of programs below org."""
    changes = [proposal.NewShare(account=f"org/{name}", share=share) for name, share in shares.items()]
    return proposal.Proposed(proposal=NAME, shares=changes, by="ada", reason="the deadline")


def moves(*transfers: proposal.NewTransfer, grants: tuple[proposal.NewGrant, ...] = ()) -> proposal.Proposed:
    """Ada proposes to move GPU-time of the cluster."""
    return proposal.Proposed(
        proposal=NAME, cluster=CLUSTER, transfers=list(transfers), grants=list(grants), by="ada", reason="why not"
    )  # fmt: skip


def transfer(account: str, to: str, gpu_hours: int) -> proposal.NewTransfer:
    return proposal.NewTransfer(account=account, to=to, period=PERIOD, gpu_ms=gpu_hours * GPU_HOUR)


def approved(by: str = "bob", cluster: str | None = None) -> proposal.Approved:
    return proposal.Approved(proposal=NAME, cluster=cluster, by=by, reason="fine")


def order(ledger: Ledger, step: Step, key: str, *, by_another: bool = True) -> Booked:
    with writing(ledger.engine) as writer:
        return take(
            writer, step, key=key, clock=ledger.clock, calendar=ledger.calendar, by_another=by_another
        )


def found(ledger: Ledger) -> Proposal:
    with reading(ledger.engine) as reader:
        return proposal_of(reader, NAME)


def shares(ledger: Ledger, at: dt.datetime) -> dict[str, int]:
    with reading(ledger.engine) as reader:
        return queries.shares_at(reader, at)


def rows_of(ledger: Ledger, book: str) -> int:
    count: int = ledger.value("SELECT count(*) FROM ledger.journal WHERE book = :book", book=book)
    return count


@pytest.fixture
def funded(ledger: Ledger) -> Ledger:
    """``org/vision`` has 100 GPU-hours of December and has used 8; ``org/speech`` has none; one host of 8 GPUs."""
    names = ("org", "org/vision", "org/speech")
    ledger.append(*(told(0, AccountCreated(account=name)) for name in names))
    ledger.append(told(0, registered("h1", 8)))
    start_s = int(NOON.timestamp()) - 4 * HOUR
    ledger.append(*run_of(start_s, start_s + HOUR))
    given = Granted(
        account="org/vision", cluster=CLUSTER, period=PERIOD, gpu_ms=100 * GPU_HOUR, reason="test", by="test"
    )
    with writing(ledger.engine) as writer:
        execute(writer, given, key="first", clock=ledger.clock, calendar=ledger.calendar)
    return ledger


def test_shares_hold_from_the_day_they_were_proposed_for(funded: Ledger) -> None:
    later = NOON + dt.timedelta(days=14)
    asked = msgspec.structs.replace(split(vision=3, speech=1), effective_at=later)
    order(funded, asked, "k1")
    assert found(funded).state is State.PENDING
    assert shares(funded, later) == {}
    order(funded, approved(), "k2")
    assert found(funded).state is State.APPROVED
    assert shares(funded, later - dt.timedelta(seconds=1)) == {}
    assert shares(funded, later) == {"org/vision": 3, "org/speech": 1}


def test_shares_never_hold_before_the_approval(funded: Ledger) -> None:
    asked = msgspec.structs.replace(split(vision=3), effective_at=NOON - dt.timedelta(days=7))
    order(funded, asked, "k1")
    funded.clock.at = NOON + dt.timedelta(hours=1)
    order(funded, approved(), "k2")
    assert shares(funded, NOON) == {}
    assert shares(funded, NOON + dt.timedelta(hours=1)) == {"org/vision": 3}


def test_what_an_approval_moves_is_booked_with_it(funded: Ledger) -> None:
    grant = proposal.NewGrant(account="org/speech", period=PERIOD, gpu_ms=5 * GPU_HOUR)
    order(funded, moves(transfer("org/vision", "org/speech", 30), grants=(grant,)), "k1")
    before = rows_of(funded, CLUSTER)
    booked = order(funded, approved(cluster=CLUSTER), "k2")
    assert rows_of(funded, CLUSTER) == before + 3
    types = funded.rows(
        "SELECT type FROM ledger.journal WHERE book = :book AND seq >= :seq ORDER BY seq",
        book=CLUSTER, seq=booked.seq,
    )  # fmt: skip
    assert types == [("budget.approved",), ("budget.granted",), ("budget.transferred",)]
    assert funded.balance("org/speech", PERIOD).available_gpu_ms == 35 * GPU_HOUR
    assert funded.balance("org/vision", PERIOD).available_gpu_ms == (100 - 8 - 30) * GPU_HOUR
    with reading(funded.engine) as reader:
        assert verify(reader).ok
        assert check(reader, funded.calendar).ok


def test_an_approval_that_one_change_stands_in_the_way_of_changes_nothing(funded: Ledger) -> None:
    order(
        funded,
        moves(transfer("org/vision", "org/speech", 60), transfer("org/vision", "org/speech", 40)),
        "k1",
    )
    before = rows_of(funded, CLUSTER)
    with pytest.raises(Refused, match=r"has 32\.000 GPU-hours left"):
        order(funded, approved(cluster=CLUSTER), "k2")
    assert rows_of(funded, CLUSTER) == before
    assert found(funded).state is State.PENDING


def test_its_effect_is_kept_as_the_books_stood(funded: Ledger) -> None:
    order(funded, split(vision=3, speech=1), "k1")
    effect = found(funded).asked.effect
    assert effect is not None
    month_gpu_ms = 8000 * 31 * 24 * HOUR
    assert [msgspec.to_builtins(row) for row in effect.shares] == [
        {"cluster": CLUSTER, "account": "org/speech", "before_ppm": 500_000, "after_ppm": 250_000,
         "before_gpu_ms": month_gpu_ms // 2, "after_gpu_ms": month_gpu_ms // 4},
        {"cluster": CLUSTER, "account": "org/vision", "before_ppm": 500_000, "after_ppm": 750_000,
         "before_gpu_ms": month_gpu_ms // 2, "after_gpu_ms": month_gpu_ms * 3 // 4},
    ]  # fmt: skip
    assert effect.period == PERIOD


def test_a_step_is_booked_once_per_key(funded: Ledger) -> None:
    first = order(funded, split(vision=3), "k1")
    again = order(funded, split(vision=3), "k1")
    assert (again.seq, again.repeated) == (first.seq, True)
    with pytest.raises(KeyReused):
        order(funded, split(vision=4), "k1")
    told_ = proposal.Commented(proposal=NAME, by="bob", reason="why so much?")
    assert not order(funded, told_, "k2").repeated
    assert order(funded, told_, "k2").repeated
    with pytest.raises(KeyReused):
        order(funded, msgspec.structs.replace(told_, reason="why so little?"), "k2")
    order(funded, approved(), "k3")
    assert order(funded, approved(), "k3").repeated, "although it is decided by now"
    assert [said.text for said in found(funded).comments] == ["why so much?"]


def test_who_proposed_it_may_not_approve_it_where_another_has_to(funded: Ledger) -> None:
    order(funded, split(vision=3), "k1")
    with pytest.raises(Forbidden, match="another person"):
        order(funded, approved(by="ada"), "k2")
    order(funded, approved(by="ada"), "k2", by_another=False)
    assert found(funded).state is State.APPROVED


@pytest.mark.parametrize("end", [proposal.Approved, proposal.Rejected, proposal.Withdrawn])
def test_what_is_decided_stays_so_and_may_be_talked_of(
    funded: Ledger, end: type[proposal.Approved | proposal.Rejected | proposal.Withdrawn]
) -> None:
    order(funded, split(vision=3), "k1")
    by = "ada" if end is proposal.Withdrawn else "bob"
    order(funded, end(proposal=NAME, by=by, reason="so be it"), "k2")
    for n, step in enumerate((approved(), proposal.Withdrawn(proposal=NAME, by="ada", reason="no"))):
        with pytest.raises(Conflict, match="already"):
            order(funded, step, f"k3/{n}")
    order(funded, proposal.Commented(proposal=NAME, by="eve", reason="a pity"), "k4")
    made = found(funded)
    assert made.decided is not None
    assert (made.decided.by, made.decided.text) == (by, "so be it")
    assert len(made.comments) == 1
    assert shares(funded, NOON) == ({"org/vision": 3} if end is proposal.Approved else {})


def test_only_who_proposed_it_takes_it_back(funded: Ledger) -> None:
    order(funded, split(vision=3), "k1")
    with pytest.raises(Forbidden):
        order(funded, proposal.Withdrawn(proposal=NAME, by="bob", reason="no"), "k2")


def test_many_who_decide_at_once_decide_once(funded: Ledger) -> None:
    order(funded, moves(transfer("org/vision", "org/speech", 10)), "k1")

    def decide(n: int) -> str:
        kind = proposal.Approved if n % 2 else proposal.Rejected
        step = kind(proposal=NAME, cluster=CLUSTER, by=f"manager {n}", reason="now")
        try:
            carry_out(funded.engine, step, key=f"k/{n}", clock=funded.clock, default_calendar=funded.calendar)
        except Conflict:
            return "late"
        return kind.__name__

    with ThreadPoolExecutor(8) as pool:
        said = sorted(pool.map(decide, range(8)))
    assert said.count("late") == 7
    moved = funded.balance("org/vision", PERIOD).available_gpu_ms == 82 * GPU_HOUR
    assert moved is ("Approved" in said)


BAD = {
    "nothing": (split(), "1 to 1000 changes"),
    "too much": (split(**{f"a{n}": 1 for n in range(CHANGES_MAX + 1)}), "not 1001"),
    "no reason": (msgspec.structs.replace(split(vision=1), reason=" "), "needs a reason"),
    "shares of a cluster": (msgspec.structs.replace(split(vision=1), cluster=CLUSTER), "hold on every cluster"),
    "time of no cluster": (
        msgspec.structs.replace(moves(transfer("org/vision", "org/speech", 1)), cluster=None), "names none",
    ),
    "time that takes effect": (
        msgspec.structs.replace(moves(transfer("org/vision", "org/speech", 1)), effective_at=NOON),
        "moved when it is approved",
    ),
    "twice": (
        msgspec.structs.replace(split(vision=1), shares=[proposal.NewShare(account="org/vision", share=1)] * 2),
        "stands twice",
    ),
    "after all periods": (
        msgspec.structs.replace(split(vision=1), effective_at=dt.datetime.max.replace(tzinfo=dt.UTC)),
        "out of all bounds",
    ),
    "nobody": (split(nobody=1), "'org/nobody'"),
    "more than there is": (moves(transfer("org/vision", "org/speech", 93)), r"has 92\.000 GPU-hours left"),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "said"), BAD.values(), ids=BAD.keys())
def test_what_could_not_be_approved_is_not_taken(funded: Ledger, asked: proposal.Proposed, said: str) -> None:
    book = asked.cluster or ORG_BOOK
    before = rows_of(funded, book)
    with pytest.raises(Refused, match=said):
        order(funded, asked, "k1")
    with reading(funded.engine) as reader, pytest.raises(Refused, match=said):
        check_proposed(reader, asked, now_s=int(NOON.timestamp()), calendar=funded.calendar)
    assert rows_of(funded, book) == before


def test_what_nobody_proposed_cannot_be_decided(funded: Ledger) -> None:
    with pytest.raises(Conflict, match="there is no proposal"):
        order(funded, approved(), "k1")
    with pytest.raises(NotFound):
        order(funded, approved(cluster="nowhere"), "k1")
    with reading(funded.engine) as reader, pytest.raises(NotFound):
        proposal_of(reader, NAME)


def test_a_key_names_one_proposal() -> None:
    assert name_for(ORG_BOOK, "k") == name_for(ORG_BOOK, "k")
    assert len({name_for(book, key) for book in (ORG_BOOK, CLUSTER) for key in ("k", "l")}) == 4


def test_no_key_of_anybodys_stands_in_the_way_of_an_approval(funded: Ledger) -> None:
    order(funded, moves(transfer("org/vision", "org/speech", 10)), "k1")
    taken = Granted(
        account="org/vision", cluster=CLUSTER, period=PERIOD, gpu_ms=GPU_HOUR, reason="test", by="eve"
    )
    with writing(funded.engine) as writer:
        execute(writer, taken, key=f"{NAME}/1", clock=funded.clock, calendar=funded.calendar)
    order(funded, approved(cluster=CLUSTER), "k2")
    assert funded.balance("org/speech", PERIOD).available_gpu_ms == 10 * GPU_HOUR


def test_as_of_a_recorded_time_it_is_what_it_was(funded: Ledger) -> None:
    order(funded, split(vision=3), "k1")
    proposed_at = found(funded).proposed_at
    funded.clock.at = NOON + dt.timedelta(hours=1)
    order(funded, approved(), "k2")
    with reading(funded.engine) as reader:
        (then,) = proposals(reader, as_of=proposed_at)
        assert then.state is State.PENDING
        assert proposals(reader, as_of=instant(0)) == []
        assert proposals(reader, [CLUSTER]) == []


def test_who_proposed_and_said_it_can_be_erased(funded: Ledger) -> None:
    order(funded, split(vision=3), "k1")
    order(funded, proposal.Commented(proposal=NAME, by="bob", reason="ada's wish"), "k2")
    order(funded, approved(), "k3")
    for person in ("ada", "bob"):
        with writing(funded.engine) as writer:
            erase(writer, person)
    made = found(funded)
    said = (made.asked.by, made.asked.reason, *(text for one in made.comments for text in one[1:]))
    assert not any("ada" in text or "deadline" in text or "bob" in text for text in said)
    assert made.state is State.APPROVED
    with reading(funded.engine) as reader:
        assert verify(reader).ok


def test_overdue_is_what_nobody_answered_in_time(funded: Ledger) -> None:
    order(funded, msgspec.structs.replace(split(vision=3), decide_by=NOON + dt.timedelta(days=1)), "k1")
    made = found(funded)
    assert not made.is_overdue(NOON)
    assert made.is_overdue(NOON + dt.timedelta(days=1))
    order(funded, proposal.Rejected(proposal=NAME, by="bob", reason="no"), "k2")
    assert not found(funded).is_overdue(NOON + dt.timedelta(days=2))


def test_shares_of_an_approval_say_who_gave_them(funded: Ledger) -> None:
    order(funded, split(vision=3), "k1")
    order(funded, approved(), "k2")
    assert funded.value(
        "SELECT u.name FROM ledger.journal AS j JOIN side.user_keys AS u ON u.token = j.body->>'by'"
        " WHERE j.type = 'budget.share_set'"
    ) == "bob"  # fmt: skip


def test_what_has_lapsed_is_not_what_an_approval_gives_away(funded: Ledger) -> None:
    """A lot of two days is gone unused on the third: what is given comes of the lot that is left."""
    short = Granted(
        account="org/speech", cluster=CLUSTER, period=PERIOD, gpu_ms=40 * GPU_HOUR, reason="test", by="test",
        expires_at=NOON.replace(hour=0) + dt.timedelta(days=2),
    )  # fmt: skip
    whole = msgspec.structs.replace(short, gpu_ms=60 * GPU_HOUR, expires_at=None)
    with writing(funded.engine) as writer:
        for key, lot in (("short", short), ("whole", whole)):
            execute(writer, lot, key=key, clock=funded.clock, calendar=funded.calendar)
    order(funded, moves(transfer("org/speech", "org/vision", 30)), "k1")
    funded.clock.at = NOON + dt.timedelta(days=3)
    order(funded, approved(cluster=CLUSTER), "k2")
    assert funded.balance("org/speech", PERIOD).available_gpu_ms == 30 * GPU_HOUR
    assert funded.value("SELECT count(*) FROM ledger.postings WHERE code = 'expiry'") > 0
    codes = "SELECT max(seq) FROM ledger.postings WHERE code = :code"
    assert funded.value(codes, code="expiry") < funded.value(codes, code="transfer")


def test_a_name_stands_for_one_proposal_in_all_books(funded: Ledger) -> None:
    """It alone says which is decided: a second one would be approved in the place of the first."""
    order(funded, split(vision=3), "k1")
    with pytest.raises(Conflict, match="there is a proposal"):
        order(funded, moves(transfer("org/vision", "org/speech", 30)), "k2")
    assert found(funded).asked.shares


def test_nobody_takes_the_place_of_all_others(funded: Ledger) -> None:
    mine = [
        msgspec.structs.replace(split(vision=3), proposal=f"p-{n:012x}") for n in range(PENDING_OWN_MAX + 1)
    ]
    for n, asked in enumerate(mine[:-1]):
        order(funded, asked, f"k{n}")
    with pytest.raises(Refused, match="of ada wait"):
        order(funded, mine[-1], "one more")
    order(funded, msgspec.structs.replace(mine[-1], by="bob"), "of another")
    taken_back = proposal.Withdrawn(proposal=mine[0].proposal, by="ada", reason="no")
    order(funded, taken_back, "withdrawn")
    order(funded, msgspec.structs.replace(mine[-1], proposal="p-ffffffffffff"), "and one more")


def test_nobody_talks_without_end(funded: Ledger) -> None:
    order(funded, split(vision=3), "k1")
    said = proposal.Commented(proposal=NAME, by="ada", reason="and")
    for n in range(COMMENTS_OWN_MAX):
        order(funded, said, f"said {n}")
    with pytest.raises(Refused, match="ada has said"):
        order(funded, said, "one more")
    order(funded, msgspec.structs.replace(said, by="bob"), "of another")
