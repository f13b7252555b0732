"""Orders for schedulers that take them."""

from tests.unit.enforce.told import facts, leaves, record, run, starts, waits

from gpuledger.enforce.orders import Acknowledgement, Answer, Order, Verb, deliver, orders

CYCLE = record(
    starts("late", 2, n1=4000),
    starts("first", 1, n2=8000),
    waits("other", 3),
    leaves("old", "1"),
    leaves("young", "1"),
)


def test_hosts_come_first_then_who_leaves_then_who_starts_in_the_order_of_the_queue() -> None:
    told = facts(
        CYCLE,
        run("old", "1", protected_for_s=0),
        run("young", "1", protected_for_s=5),
        draining={"n9": True, "n8": False},
    )
    given = orders(told, grace_s=60)

    assert [(o.verb, o.subject, o.run, dict(o.hosts), o.grace_s) for o in given] == [
        (Verb.RESUME, "n8", "", {}, 0),
        (Verb.DRAIN, "n9", "", {}, 0),
        (Verb.PREEMPT, "old", "1", {}, 60),
        (Verb.START, "first", "", {"n2": 8000}, 0),
        (Verb.START, "late", "", {"n1": 4000}, 0),
    ]


def test_what_runs_already_is_not_started_again() -> None:
    given = orders(facts(CYCLE, run("first", "2", protected_for_s=5)), grace_s=60)
    assert [order.subject for order in given if order.verb is Verb.START] == ["late"]


def test_an_old_cycle_starts_and_stops_nothing_but_still_drains() -> None:
    told = facts(CYCLE, run("old", "1", protected_for_s=0), age_s=601, draining={"n9": True})
    assert [order.verb for order in orders(told, grace_s=60)] == [Verb.DRAIN]


class Once:
    def __init__(self) -> None:
        self.taken: list[Order] = []

    def take(self, order: Order) -> Acknowledgement:
        self.taken.append(order)
        return Acknowledgement(order, Answer.DONE)


def test_an_order_is_given_once_however_often_it_is_listed() -> None:
    taker = Once()
    given = [Order("c", Verb.START, "a"), Order("c", Verb.PREEMPT, "a", run="1"), Order("c", Verb.START, "a")]
    assert [one.order.verb for one in deliver(given, taker)] == [Verb.START, Verb.PREEMPT]
    assert len(taker.taken) == 2
