"""By when promises are due, and who is gone by then."""

from gpuledger.policy.deadlines import Deadlines
from gpuledger.policy.state import RunId

EARLY, LATE = RunId("early", "1"), RunId("late", "1")
BOTH = {EARLY, LATE}


def due() -> Deadlines:
    """6 GPUs of h are promised from 100 on, 3 more from 200 on; early leaves 4 by 100, late 5 by 200."""
    found = Deadlines()
    found.promise("h", 100, 6000)
    found.promise("h", 200, 3000)
    found.leaves_by(EARLY, 100, [("h", 4000)])
    found.leaves_by(LATE, 200, [("h", 5000), ("i", 1000)])
    return found


def test_what_is_left_counts_those_alone_who_are_gone_by_then() -> None:
    found = due()
    assert list(found.left("h", 3000, BOTH)) == [3000 + 4000 - 6000, 3000 + 9000 - 9000]
    assert list(found.left("h", 3000, {EARLY})) == [3000 + 4000 - 6000, 3000 + 4000 - 9000]
    assert list(found.left("h", 3000, {LATE})) == [3000 - 6000, 3000 + 5000 - 9000]
    assert not list(found.left("i", 3000, BOTH)), "nothing is promised there"


def test_a_run_concerns_the_instants_by_which_it_was_to_be_gone() -> None:
    found = due()
    assert list(found.left("h", 0, BOTH, counting=EARLY)) == [4000 - 6000, 0]
    assert list(found.left("h", 0, BOTH, counting=LATE)) == [0]
    assert not list(found.left("h", 0, BOTH, counting=RunId("other", "1")))


def test_what_is_promised_no_longer_leaves_more() -> None:
    found = due()
    found.promise("h", 100, -6000)
    assert list(found.left("h", 0, BOTH)) == [4000, 9000 - 3000]


def test_the_first_note_of_a_run_counts() -> None:
    found = due()
    found.leaves_by(EARLY, 50, [("h", 4000)])
    assert (
        found.is_gone_by(EARLY, 99),
        found.is_gone_by(EARLY, 100),
        found.is_gone_by(RunId("x", "1"), 999),
    ) == (
        False,
        True,
        False,
    )
