"""What was changed of a request is told with its moment, in words."""

import datetime as dt

import msgspec

from gpuledger.events import workload as events
from gpuledger.ledger.facts import Known
from gpuledger.ledger.requests import requests_of
from gpuledger.ledger.segments import derive
from gpuledger.policy.happenings import requests_told

NAMED = {"cluster": "c", "workload": "w"}
AT = dt.datetime(1970, 1, 1, 1, tzinfo=dt.UTC)


def known(at_s: int, fact: events.WorkloadFact) -> Known:
    return Known(fact, at_s, "s", msgspec.json.encode(fact))


def told(*facts: Known) -> list[tuple[int, str, str]]:
    return [(h.at_s, h.what, h.text) for h in requests_told(requests_of(facts), derive(facts))]


ASKED = known(
    0, events.Submitted(**NAMED, account="org/a", user="u", gpus_milli=8000, minimum_runtime_s=3600)
)
SUBMITTED = (0, "submitted", "Submitted for org/a: 8 GPUs, minimum runtime 1 h.")


def test_a_change_is_told_and_the_wait_goes_on() -> None:
    moved = known(60, events.Updated(**NAMED, account="org/b", priority=5, time_limit_s=7200))
    text = "Changed: org/b pays, limit 2 h, priority 5 within its account."
    assert told(ASKED, moved) == [SUBMITTED, (60, "updated", text)]


def test_every_key_has_its_words() -> None:
    change = events.Updated(
        **NAMED, gpus_milli=1000, gpu_model="h100", minimum_runtime_s=0, time_limit_s=0, kind="debug",
        resumable=False, eligible_at=AT, clusters=["c"], labels={"partition": "long"},
    )  # fmt: skip
    _, (_, _, text), (at_s, what, _) = told(ASKED, known(60, change))
    assert text == (
        "Changed: asks for 1 GPU, model h100, minimum runtime 0, which runs unallocated, no limit, kind debug,"
        " resumable False, may start from 1970-01-01T01:00:00Z on, clusters ['c'], partition long."
    )
    assert (at_s, what) == (3600, "eligible")


def test_of_what_nobody_submitted_nothing_is_told() -> None:
    assert told(known(60, events.Updated(**NAMED, account="org/b"))) == []
