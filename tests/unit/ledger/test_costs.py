"""What a workload cost up to an instant."""

from gpuledger.events import workload as events
from gpuledger.ledger.costs import cost_of
from gpuledger.ledger.facts import Known
from gpuledger.ledger.segments import derive

DAY = 86_400


def fact(at_s: int, kind: type, **keys: object) -> Known:
    data = kind(cluster="c", workload="w", run="1", **keys)
    return Known(data, at_s, "test", b"%d" % at_s)


def started(at_s: int) -> Known:
    return fact(at_s, events.Started, attempt=1, gpus_milli=8000, hosts=["h1"])


def test_an_open_run_is_booked_up_to_the_tick_and_the_rest_came_since() -> None:
    history = derive([started(100)])
    assert cost_of(history, 1100, 500) == ((8000 * 400, 0, 0), 8000 * 600)
    assert cost_of(history, 1100, None) == ((0, 0, 0), 8000 * 1000)


def test_of_a_day_that_is_booked_whole_only_what_was_before_the_instant_counts() -> None:
    history = derive([started(DAY - 3600)])
    for at_s in (DAY - 1800, DAY, DAY + 7):  # ticks came later: all of it is booked
        assert cost_of(history, at_s, 5 * DAY) == ((8000 * (at_s - DAY + 3600), 0, 0), 0)


def test_classes_stay_apart_and_what_is_over_is_booked() -> None:
    change = fact(400, events.ClassChanged, klass="unallocated", reason="no budget")
    history = derive([started(100), change, fact(1000, events.Ended, reason="completed")])
    assert cost_of(history, 2000, None) == ((8000 * 300, 8000 * 600, 0), 0)
