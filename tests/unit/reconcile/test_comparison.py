"""Each difference between a ledger and a scheduler's record gets the class that says how it came about."""

import msgspec
import pytest

from gpuledger.events import workload as events
from gpuledger.ledger.facts import Known
from gpuledger.reconcile.comparison import GRACE_S, Bounds, Class, Difference, compare

TAKEN_S = 10_000
BOUNDS = Bounds(from_s=100, to_s=TAKEN_S, taken_s=TAKEN_S)
NAMED = {"cluster": "c", "workload": "w"}


def known(at_s: int, fact: events.WorkloadFact, source: str = "slurm/c") -> Known:
    return Known(fact, at_s, source, msgspec.json.encode(fact))


def started(at_s: int, run: str = "1", gpus: int = 2, source: str = "slurm/c", **keys: object) -> Known:
    given = {"attempt": 1, "gpus_milli": 1000 * gpus, "hosts": [], "account": "c/a", **keys}
    return known(at_s, events.Started(**NAMED, run=run, **given), source)


def ended(at_s: int, run: str | None = "1", source: str = "slurm/c", **keys: object) -> Known:
    return known(at_s, events.Ended(**NAMED, run=run, reason="COMPLETED", **keys), source)


def compared(ledger: list[Known], record: list[Known], bounds: Bounds = BOUNDS) -> list[Difference | None]:
    return [difference for _, _, difference in compare("c", "w", ledger, record, bounds)]


def klass(ledger: list[Known], record: list[Known]) -> Class:
    (difference,) = compared(ledger, record)
    assert difference is not None
    return difference.klass


RUN = [started(200), ended(500)]


def test_sides_that_agree_do_not_differ_whoever_the_user_is() -> None:
    ledger = [started(200, user="token"), ended(500)]

    assert compared(ledger, [started(200, user="ada"), ended(500)]) == [None]


def test_the_amounts_are_those_up_to_when_the_record_was_taken() -> None:
    ((key, amounts, _),) = compare("c", "w", [started(200)], RUN, BOUNDS)

    assert key == ("c", "w", "1")
    assert amounts == (2000 * (TAKEN_S - 200), 2000 * 300)


@pytest.mark.parametrize("ledger", [[], [started(200)]])
def test_what_never_came_is_lost(ledger: list[Known]) -> None:
    assert klass(ledger, RUN) is Class.LOST


def test_what_happened_just_now_is_late() -> None:
    recent_s = TAKEN_S - GRACE_S

    assert klass([started(200)], [started(200), ended(recent_s)]) is Class.LATE
    assert klass([], [started(recent_s)]) is Class.LATE


def test_what_happened_since_the_record_was_taken_is_newer() -> None:
    assert klass([started(200), ended(TAKEN_S)], [started(200)]) is Class.NEWER


def test_an_end_that_the_ledger_estimated_is_told_as_such() -> None:
    estimate = ended(450, estimated=True, source="gpuledger/lost-ends")

    assert klass([started(200), estimate], RUN) is Class.ESTIMATED


def test_a_record_that_was_changed_after_it_was_read_is_edited() -> None:
    assert klass(RUN, [started(200, account="c/b"), ended(500)]) is Class.EDITED
    assert klass(RUN, [started(200), ended(480)]) is Class.EDITED


def test_another_source_that_counts_more_is_named() -> None:
    other = ended(480, source="reconcile/slurm/c")

    (difference,) = compared([*RUN, other], RUN)

    assert difference is not None
    assert difference.klass is Class.OUTRANKED
    assert difference.message.endswith("; the ledger believes reconcile/slurm/c, slurm/c")


def test_a_size_that_never_came_is_lost() -> None:
    resized = known(300, events.Resized(**NAMED, run="1", gpus_milli=1000, hosts=[]))

    assert klass(RUN, [*RUN, resized]) is Class.LOST


def test_a_run_that_the_record_should_list_and_does_not_is_unknown() -> None:
    assert klass(RUN, []) is Class.UNKNOWN


@pytest.mark.parametrize(
    "outside",
    [[started(20), ended(100)], [started(TAKEN_S)], [started(TAKEN_S - GRACE_S)]],
    ids=["ended before", "started after", "started just before"],
)
def test_a_run_that_the_record_need_not_list_is_not_compared(outside: list[Known]) -> None:
    assert compared(outside, []) == []


def test_only_runs_are_compared_one_by_one() -> None:
    second = [started(600, "2"), ended(700, "2")]

    first, other = compared([*RUN, *second], [*RUN, started(600, "2"), ended(650, "2")])

    assert first is None
    assert other is not None
    assert other.message == (
        "the ledger has 2 GPUs 1970-01-01T00:10:00Z to 1970-01-01T00:11:40Z for c/a; "
        "the record has 2 GPUs 1970-01-01T00:10:00Z to 1970-01-01T00:10:50Z for c/a"
    )


def test_a_class_is_explained_or_can_be_mended_or_needs_a_person() -> None:
    assert {klass for klass in Class if not klass.is_explained} == {
        Class.LOST, Class.UNKNOWN, Class.UNREADABLE, Class.UNEXPLAINED,
    }  # fmt: skip
    assert {klass for klass in Class if not klass.is_explained and not klass.is_mendable} == {
        Class.UNKNOWN, Class.UNREADABLE,
    }  # fmt: skip


def moved(at_s: int, **keys: object) -> Known:
    return known(at_s, events.Updated(**NAMED, **keys))


ASKED = known(150, events.Submitted(**NAMED, account="c/a", user="u", gpus_milli=2000))
OF_B = known(150, events.Submitted(**NAMED, account="c/b", user="u", gpus_milli=2000))


def test_a_run_that_was_moved_is_compared_by_who_pays_at_last() -> None:
    ledger = [
        ASKED,
        started(200, account=None),
        moved(300, account="c/x"),
        moved(400, account="c/b"),
        ended(500),
    ]

    assert compared(ledger, [OF_B, started(200, account="c/b"), ended(500)]) == [None]
    assert klass(ledger, [ASKED, started(200), ended(500)]) is Class.EDITED


def test_all_else_of_a_run_that_was_moved_is_compared_as_ever() -> None:
    resized = known(350, events.Resized(**NAMED, run="1", gpus_milli=1000, hosts=[]))
    ledger, record = (
        [ASKED, started(200, account=None), moved(300, account="c/b")],
        [started(200, account="c/b")],
    )

    assert compared([*ledger, resized, ended(500)], [*record, resized, ended(500)]) == [None]
    assert klass([*ledger, ended(500)], [*record, ended(480)]) is Class.EDITED
    assert klass([*ledger, ended(500)], [*record, resized, ended(500)]) is Class.LOST


def test_an_update_that_moves_nobody_excuses_no_other_account() -> None:
    ledger = [ASKED, started(200, account=None), moved(300, priority=5), ended(500)]

    assert klass(ledger, [started(200, account="c/b"), ended(500)]) is Class.EDITED
