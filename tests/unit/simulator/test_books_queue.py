"""Who waits, and who came and went since that was last asked."""

from dataclasses import replace

from tests.unit.policy.forests import pending

from gpuledger.policy.ordering import Turnout
from gpuledger.simulator.books_queue import Queue

A, B = pending("a", "org/x"), pending("b", "org/y")


def test_who_came_and_went_is_told_once() -> None:
    queue = Queue()
    queue.join(A)
    queue.join(B)
    assert queue.turnout() == Turnout((), (A, B))
    assert queue.leave("a") is A
    assert queue.turnout() == Turnout((A,), ())
    assert queue.turnout() == Turnout((), ())
    assert (queue.leave("a"), list(queue.pending)) == (None, ["b"])


def test_who_came_and_went_in_between_is_told_to_nobody() -> None:
    queue = Queue()
    queue.join(A)
    queue.leave("a")
    assert queue.turnout() == Turnout((), ())


def test_who_asks_for_something_else_goes_and_comes() -> None:
    queue = Queue()
    queue.join(A)
    queue.turnout()
    queue.join(B)
    queue.change(lambda one: replace(one, gpu_model="h100"))
    found = queue.turnout()
    assert found.gone == (A,)
    assert {one.workload: one.gpu_model for one in found.come} == {"a": "h100", "b": "h100"}
    queue.change(lambda one: one)
    assert queue.turnout() == Turnout((), ())


def test_all_that_waits_may_be_of_one_account() -> None:
    queue = Queue()
    assert list(queue.of_one_account()) == []
    queue.join(A)
    assert list(queue.of_one_account()) == [A]
    queue.join(B)
    assert list(queue.of_one_account()) == []
    queue.leave("a")
    assert list(queue.of_one_account()) == [B]
