"""Semantics traps of schedulers that the ledger itself decides, each with its number in the list of traps.

Amounts are GPU-seconds unless said otherwise. A case is told as a source would tell it: facts in the
order given, and again in the reverse order, because order of arrival must not matter.
"""

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from gpuledger.events import telemetry
from gpuledger.events import workload as events
from gpuledger.events.envelope import decode, make
from gpuledger.events.telemetry import check
from gpuledger.kernel.apportion import apportion
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import BadRecord
from gpuledger.ledger.charges import CHARGE, PHYSICAL, UNALLOCATED, desired
from gpuledger.ledger.facts import Known
from gpuledger.ledger.segments import History, derive

NAMED = {"cluster": "c", "workload": "job"}
GPUS_8 = 8000


def at(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp())


def known(when: str, fact: events.WorkloadFact, source: str = "slurm/jobcomp") -> Known:
    return Known(fact, at(when), source, msgspec.json.encode(fact))


def submitted(when: str, **keys: Any) -> Known:  # noqa: ANN401
    asked = {"account": "org/a", "user": "u-1", "gpus_milli": GPUS_8, **keys}
    return known(when, events.Submitted(**NAMED, **asked))


def started(when: str, run: str = "1", gpus_milli: int = GPUS_8, **keys: Any) -> Known:  # noqa: ANN401
    return known(
        when, events.Started(**NAMED, run=run, attempt=1, gpus_milli=gpus_milli, hosts=["h1"], **keys)
    )


def ended(when: str, run: str | None = "1", source: str = "slurm/jobcomp", **keys: Any) -> Known:  # noqa: ANN401
    return known(when, events.Ended(**NAMED, run=run, reason="completed", **keys), source)


def about(when: str, kind: type[events.RunFact], **keys: Any) -> Known:  # noqa: ANN401
    return known(when, kind(**NAMED, run="1", **keys))


def requeued(when: str, run: str) -> Known:
    return known(when, events.Requeued(**NAMED, run=run, reason="node-fail"))


@dataclass(frozen=True)
class Trap:
    """One row of the list: what happened, and how many GPU-seconds stand for it by day and code."""

    row: int
    what: str
    facts: Sequence[Known]
    charged: dict[str, int]
    free: dict[str, int] = field(default_factory=dict)
    zone: str = "UTC"


def gpu_seconds(history: History, zone: str, code: str) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for key, gpu_ms in desired(history, Calendar(zone)).items():
        if (key.commodity, key.code) == (PHYSICAL, code):
            sums[key.day.isoformat()] += gpu_ms
    return {day: gpu_ms // 1000 for day, gpu_ms in sums.items()}


OCTOBER = (started("2017-10-31T22:30:00Z"), ended("2017-11-01T03:15:00Z"))
SUSPENDED = (
    started("2017-10-09T00:00:00Z"),
    about("2017-10-09T00:30:00Z", events.Suspended),
    about("2017-10-09T01:00:00Z", events.Resumed),
    ended("2017-10-09T02:00:00Z"),
)
ATTEMPTS = (
    started("2017-10-09T00:00:00Z", "1", 1000), requeued("2017-10-09T01:04:49Z", "1"),
    started("2017-10-09T02:00:00Z", "2", 1000), requeued("2017-10-09T03:14:33Z", "2"),
    started("2017-10-09T04:00:00Z", "3", 1000), requeued("2017-10-09T05:42:02Z", "3"),
    started("2017-10-09T06:00:00Z", "4", 1000), ended("2017-10-09T06:35:53Z", "4"),
)  # fmt: skip
DAY = "2017-10-09"

TRAPS = [
    Trap(2, "a requeue under the same id is the sum of its runs", ATTEMPTS, {DAY: 16_637}),
    Trap(6, "suspended GPUs stay held", SUSPENDED, {DAY: 8 * 7_200}),
    Trap(7, "a month's end cuts in UTC books", OCTOBER, {"2017-10-31": 43_200, "2017-11-01": 93_600}),
    Trap(7, "and not in Los Angeles books", OCTOBER, {"2017-10-31": 136_800}, zone="America/Los_Angeles"),
    Trap(9, "negative elapsed is charged 0", (started(f"{DAY}T02:00:00Z"), ended(f"{DAY}T01:00:00Z")), {}),
    Trap(9, "zero elapsed is charged 0", (started(f"{DAY}T02:00:00Z"), ended(f"{DAY}T02:00:00Z")), {}),
    Trap(
        21,
        "each size of a resized run is an interval of its own",
        (
            started(f"{DAY}T00:00:00Z"),
            about(f"{DAY}T01:00:00Z", events.Resized, gpus_milli=2000, hosts=["h1"]),
            about(f"{DAY}T02:00:00Z", events.Resized, gpus_milli=16_000, hosts=["h1", "h2"]),
            ended(f"{DAY}T03:00:00Z"),
        ),
        {DAY: (8 + 2 + 16) * 3_600},
    ),
    Trap(
        22,
        "a run that ended in a requeue counts",
        (started(f"{DAY}T00:00:00Z"), requeued(f"{DAY}T01:00:00Z", "1")),
        {DAY: 8 * 3_600},
    ),
    Trap(
        25,
        "cancelled while pending is 0",
        (submitted(f"{DAY}T00:00:00Z"), ended(f"{DAY}T01:00:00Z", None)),
        {},
    ),
    Trap(
        25,
        "cancelled with a start in the future is 0",
        (started(f"{DAY}T09:00:00Z"), ended(f"{DAY}T01:00:00Z")),
        {},
    ),
    Trap(26, "a run that goes on is not charged as if it had ended", (started(f"{DAY}T00:00:00Z"),), {}),
    Trap(
        27,
        "a lost end is the last evidence of life until the truth arrives",
        (started(f"{DAY}T00:00:00Z"), ended(f"{DAY}T03:00:00Z", estimated=True)),
        {DAY: 8 * 10_800},
    ),
    Trap(
        27,
        "the truth counts, be it earlier or later than the estimate",
        (started(f"{DAY}T00:00:00Z"), ended(f"{DAY}T03:00:00Z", estimated=True), ended(f"{DAY}T01:00:00Z")),
        {DAY: 8 * 3_600},
    ),
    Trap(
        32,
        "a reconciliation is believed above the stream",
        (
            started(f"{DAY}T00:00:00Z"),
            ended(f"{DAY}T02:00:00Z"),
            ended(f"{DAY}T01:00:00Z", source="reconcile/sacct"),
        ),
        {DAY: 8 * 3_600},
    ),
    Trap(
        39,
        "clocks go back: 01:30 to 01:30 is an hour",
        (started("2017-10-29T02:30:00+02:00", gpus_milli=1000), ended("2017-10-29T02:30:00+01:00")),
        {"2017-10-29": 3_600},
        zone="Europe/Berlin",
    ),
    Trap(
        39,
        "the day clocks go back has 25 hours",
        (started("2017-10-28T22:00:00Z", gpus_milli=1000), ended("2017-10-29T23:00:00Z")),
        {"2017-10-29": 25 * 3_600},
        zone="Europe/Berlin",
    ),
    Trap(
        40,
        "clocks go forward: 01:30 to 03:30 is an hour",
        (started("2017-03-26T01:30:00+01:00", gpus_milli=1000), ended("2017-03-26T03:30:00+02:00")),
        {"2017-03-26": 3_600},
        zone="Europe/Berlin",
    ),
    Trap(
        53,
        "preempted work is charged to the kill",
        (
            started(f"{DAY}T00:00:00Z"),
            known(f"{DAY}T01:00:30Z", events.Preempted(**NAMED, run="1", reason="policy")),
        ),
        {DAY: 8 * 3_630},
    ),
    Trap(
        54,
        "a change of class in mid-run makes two intervals",
        (
            started(f"{DAY}T00:00:00Z"),
            about(f"{DAY}T01:00:00Z", events.ClassChanged, klass="unallocated", reason="soft landing"),
            ended(f"{DAY}T03:00:00Z"),
        ),
        {DAY: 8 * 3_600},
        {DAY: 8 * 7_200},
    ),
    Trap(
        57,
        "a leap second is not there: POSIX time",
        (started("2016-12-31T23:59:00Z", gpus_milli=1000), ended("2017-01-01T00:01:00Z")),
        {"2016-12-31": 60, "2017-01-01": 60},
    ),
]


@pytest.mark.parametrize("trap", TRAPS, ids=[f"{trap.row}-{trap.what}" for trap in TRAPS])
def test_the_trap_has_its_right_value_in_any_order_of_arrival(trap: Trap) -> None:
    for facts in (trap.facts, trap.facts[::-1], [*trap.facts, *trap.facts]):
        history = derive(facts)
        assert gpu_seconds(history, trap.zone, CHARGE) == trap.charged
        assert gpu_seconds(history, trap.zone, UNALLOCATED) == trap.free


def test_4_the_wait_of_the_user_begins_with_the_first_submission_and_each_run_has_its_own() -> None:
    history = derive([submitted("2017-10-08T23:00:00Z"), *ATTEMPTS])
    waited = [(wait.to_s or 0) - wait.from_s for wait in history.waits]
    assert waited == [3_600, 55 * 60 + 11, 45 * 60 + 27, 17 * 60 + 58]
    assert {wait.submitted_s for wait in history.waits} == {at("2017-10-08T23:00:00Z")}


def test_9_the_row_of_negative_elapsed_is_kept_as_a_fact_that_holds_nothing() -> None:
    history = derive([submitted(f"{DAY}T00:00:00Z"), started(f"{DAY}T02:00:00Z"), ended(f"{DAY}T01:00:00Z")])
    assert history.segments == ()
    assert [(wait.from_s, wait.to_s) for wait in history.waits] == [
        (at(f"{DAY}T00:00:00Z"), at(f"{DAY}T02:00:00Z"))
    ]


def test_25_a_job_cancelled_while_pending_waited_until_it_was_cancelled() -> None:
    (wait,) = derive([submitted(f"{DAY}T00:00:00Z"), ended(f"{DAY}T01:00:00Z", None)]).waits
    assert (wait.from_s, wait.to_s) == (at(f"{DAY}T00:00:00Z"), at(f"{DAY}T01:00:00Z"))


def test_26_an_unknown_end_is_an_open_interval_and_never_1970() -> None:
    (segment,) = derive([started(f"{DAY}T00:00:00Z")]).segments
    assert (segment.from_s, segment.to_s) == (at(f"{DAY}T00:00:00Z"), None)


def test_27_an_estimated_end_is_flagged_and_the_truth_is_not() -> None:
    estimate = [started(f"{DAY}T00:00:00Z"), ended(f"{DAY}T03:00:00Z", estimated=True)]
    assert [segment.estimated for segment in derive(estimate).segments] == [True]
    assert [segment.estimated for segment in derive([*estimate, ended(f"{DAY}T01:00:00Z")]).segments] == [
        False
    ]


@pytest.mark.parametrize("first", ["started", "ended"])
def test_31_an_end_that_arrives_before_its_start_reaches_the_same_state(first: str) -> None:
    facts = {"started": started(f"{DAY}T00:00:00Z"), "ended": ended(f"{DAY}T01:00:00Z")}
    early = facts.pop(first)
    (late,) = facts.values()
    assert gpu_seconds(derive([early]), "UTC", CHARGE) == {}
    assert gpu_seconds(derive([early, late]), "UTC", CHARGE) == {DAY: 8 * 3_600}


def test_36_an_account_edited_after_the_end_moves_the_whole_run() -> None:
    facts = [submitted(f"{DAY}T00:00:00Z"), started(f"{DAY}T00:00:00Z"), ended(f"{DAY}T01:00:00Z")]
    moved = events.Submitted(**NAMED, account="org/b", user="u-1", gpus_milli=GPUS_8)
    history = derive([*facts, known(f"{DAY}T00:00:00Z", moved, "reconcile/sacct")])
    assert {key.account for key in desired(history, Calendar())} == {"org/b"}


@pytest.mark.parametrize("gpus_milli", [142, 143, 250, 333])
def test_19_a_slice_of_a_gpu_is_charged_by_the_thousandth(gpus_milli: int) -> None:
    (segment,) = derive(
        [started(f"{DAY}T00:00:00Z", gpus_milli=gpus_milli), ended(f"{DAY}T00:00:07Z")]
    ).segments
    (amount,) = [
        a for key, a in desired(History((segment,), ()), Calendar()).items() if key.commodity == PHYSICAL
    ]
    assert amount == gpus_milli * 7


def test_19_the_slices_of_one_gpu_sum_to_one_gpu() -> None:
    assert sum(apportion(1000, [1] * 7)) == 1000


def test_41_a_time_without_an_offset_is_refused() -> None:
    value = make(id="x", source="s", at_s=0, data=ended(f"{DAY}T01:00:00Z").data)[1]
    naive = value.replace(b"1970-01-01T00:00:00Z", b"1970-01-01T00:00:00")
    assert naive != value
    with pytest.raises(BadRecord) as refused:
        decode(naive)
    assert refused.value.code == "naive-time"


@pytest.mark.parametrize("sentinel", ["9223372036854775794", "4294967295", "2147483632"])
def test_47_a_blank_sentinel_is_refused_and_never_averaged(sentinel: str) -> None:
    gpus = msgspec.json.decode(
        f'[{{"uuid": "GPU-1", "gpu_util": {sentinel}}}]', type=list[telemetry.GpuSample]
    )
    with pytest.raises(BadRecord, match="not a percentage"):
        check(telemetry.Sampled(cluster="c", host="h1", interval_s=60, gpus=gpus))


@pytest.mark.parametrize("amount", ["0.5", "8000.0", "1e3", '"8000"', "-1", "true"])
def test_57_an_amount_that_is_no_whole_number_is_refused(amount: str) -> None:
    value = make(id="x", source="s", at_s=0, data=started(f"{DAY}T00:00:00Z", gpus_milli=8765).data)[1]
    with pytest.raises(BadRecord, match="gpus_milli"):
        decode(value.replace(b":8765", b":" + amount.encode()))


def test_57_a_time_with_a_fraction_of_a_second_is_floored() -> None:
    value = make(id="x", source="s", at_s=0, data=ended(f"{DAY}T01:00:00Z").data)[1]
    assert decode(value.replace(b"1970-01-01T00:00:00Z", b"1970-01-01T00:00:59.999999Z")).at_s == 59


def test_56_an_idle_run_is_charged_like_any_other() -> None:
    # Use comes from samples; a charge comes from occupation alone.
    assert gpu_seconds(derive([started(f"{DAY}T00:00:00Z"), ended(f"{DAY}T01:00:00Z")]), "UTC", CHARGE) == {
        DAY: 8 * 3_600
    }
