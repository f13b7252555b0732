"""What rows say of proposals, against a reader who looks at each row once and keeps notes on paper."""

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.events import proposal
from gpuledger.events.proposal import NewGrant, NewShare, NewTransfer, Proposed
from gpuledger.ledger.proposals import State, Told, accounts_of, folded

NOON = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
KINDS = {
    "proposed": proposal.Proposed,
    "commented": proposal.Commented,
    "approved": proposal.Approved,
    "rejected": proposal.Rejected,
    "withdrawn": proposal.Withdrawn,
}

ROWS = st.lists(st.tuples(st.sampled_from(sorted(KINDS)), st.sampled_from("abc")), max_size=25)


@given(ROWS)
def test_a_proposal_is_ended_once_and_talked_of_for_ever(rows: list[tuple[str, str]]) -> None:
    told = [
        Told(n, NOON + dt.timedelta(seconds=n), KINDS[kind](proposal=name, by=f"by {n}", reason=f"row {n}"))
        for n, (kind, name) in enumerate(rows)
    ]
    found = {made.asked.proposal: made for made in folded(told)}
    for name in "abc":
        of = [(n, kind) for n, (kind, said) in enumerate(rows) if said == name]
        begun = [n for n, kind in of if kind == "proposed"]
        if not begun:
            assert name not in found
            continue
        made, later = found[name], [(n, kind) for n, kind in of if n > begun[0]]
        ends = [(n, kind) for n, kind in later if kind not in ("proposed", "commented")]
        assert made.seq == begun[0]
        assert made.state == (State.PENDING if not ends else State(ends[0][1]))
        assert (made.decided and made.decided.text) == (f"row {ends[0][0]}" if ends else None)
        assert [said.text for said in made.comments] == [
            f"row {n}" for n, kind in later if kind == "commented"
        ]
    assert list(found) == sorted(found, key=lambda name: found[name].seq)


def test_every_account_that_a_proposal_names() -> None:
    time = {"period": "2026-12", "gpu_ms": 1}
    asked = Proposed(
        proposal="p", by="ada", reason="why",
        shares=[NewShare(account="c", share=1), NewShare(account="a", share=1)],
        grants=[NewGrant(account="b", **time)],  # type: ignore[arg-type]
        transfers=[NewTransfer(account="a", to="d", **time)],  # type: ignore[arg-type]
    )  # fmt: skip
    assert accounts_of(asked) == ("a", "b", "c", "d")


def test_it_is_overdue_until_it_is_decided() -> None:
    asked = Proposed(proposal="p", by="ada", reason="why", decide_by=NOON)
    (pending,) = folded([Told(1, NOON, asked)])
    assert (pending.is_overdue(NOON - dt.timedelta(seconds=1)), pending.is_overdue(NOON)) == (False, True)
    end = proposal.Rejected(proposal="p", by="bob", reason="no")
    (ended,) = folded([Told(1, NOON, asked), Told(2, NOON, end)])
    assert not ended.is_overdue(NOON)
    said = ended.as_json(NOON)
    assert said["decided"] == {"at": "2026-12-01T12:00:00Z", "by": "bob", "text": "no"}
    assert (said["decide_by"], said["effective_at"]) == ("2026-12-01T12:00:00Z", None)
