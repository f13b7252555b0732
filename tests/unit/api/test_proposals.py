"""A proposal that is sent, as it is booked."""

import datetime as dt

import pytest
from pydantic import ValidationError

from gpuledger.api.proposals import Proposal, ProposalBody
from gpuledger.events.proposal import NewGrant, NewShare
from gpuledger.kernel.errors import Refused

GRANT = {"account": "org/a", "period": "2026-12", "gpu_ms": 5}


def test_it_is_booked_as_it_was_sent() -> None:
    body = ProposalBody.model_validate_json(
        '{"reason": "why", "shares": [{"account": "org/a", "share": 3}], "effective_at": "2026-12-15T01:00:00.5+01:00"}'
    )
    fact = body.as_fact("p-000000000001", "ada")
    assert fact.shares == [NewShare(account="org/a", share=3)]
    assert fact.effective_at == dt.datetime(2026, 12, 15, tzinfo=dt.UTC), "parts of seconds are floored"
    assert (fact.proposal, fact.by, fact.reason, fact.effect) == ("p-000000000001", "ada", "why", None)


def test_a_rollover_has_one_spelling() -> None:
    def grants(rollover: str) -> list[NewGrant]:
        body = ProposalBody(reason="why", cluster="a", grants=[{**GRANT, "rollover": rollover}])  # type: ignore[list-item]
        return body.as_fact("p", "ada").grants

    assert grants("max  100")[0].rollover == grants("max 100")[0].rollover
    with pytest.raises(Refused):
        grants("some")


@pytest.mark.parametrize(
    "more", [{"by": "bob"}, {"effect": {}}, {"state": "approved"}, {"shares": [{"account": "", "share": 1}]}]
)
def test_what_is_not_theirs_to_say_is_refused(more: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ProposalBody.model_validate({"reason": "why", **more})


def test_the_answer_tells_what_null_means() -> None:
    described = Proposal.model_json_schema()["properties"]
    assert "null for a dry run" in described["seq"]["description"]
