from tests.unit.simulator.stories import START_S, host

from gpuledger.simulator.drains import Drains
from gpuledger.simulator.facts import HostCondition

DRAINING, DOWN, HEALTHY = HostCondition.DRAINING, HostCondition.DOWN, HostCondition.HEALTHY


def test_the_time_until_a_host_is_empty() -> None:
    drains = Drains(START_S)
    drains.change(host("h1", 10, DRAINING))
    drains.emptied(START_S + 70, "h1")
    drains.change(host("h1", 90, DOWN, planned=True))
    drains.change(host("h1", 900, HEALTHY))
    assert (drains.begun, drains.asked, drains.lengths.ended) == (1, 0, {60: 1})


def test_a_drain_that_was_cut_short_took_at_least_so_long() -> None:
    drains = Drains(START_S)
    for name, condition in (("h1", DOWN), ("h2", HEALTHY)):
        drains.change(host(name, 0, DRAINING))
        drains.change(host(name, 50, condition))
    drains.change(host("h3", 0, DRAINING))
    assert drains.open == ("h3",)
    drains.close(START_S + 80)
    assert drains.lengths.unended == {50: 2, 80: 1}
    assert not drains.lengths.ended


def test_asking_several_users_of_one_host_is_one_repair_that_needed_a_human() -> None:
    drains = Drains(START_S)
    drains.change(host("h1", 0, DRAINING))
    drains.ask("h1")
    drains.ask("h1")
    drains.change(host("h1", 10, DOWN, planned=True))
    drains.change(host("h1", 20, HEALTHY))
    drains.ask("h1")  # nobody empties it now
    drains.change(host("h1", 30, DRAINING))
    drains.ask("h1")
    assert (drains.begun, drains.asked) == (2, 2)


def test_which_need_hands_is_counted_with_those_that_began() -> None:
    drains = Drains(START_S + 5)
    for at_s, hands in ((0, True), (8, True), (9, False)):  # the first before the window
        drains.change(host(f"h{at_s}", at_s, DRAINING), hands=hands)
    assert (drains.begun, drains.hands) == (2, 1)
    unknown = Drains(START_S)
    unknown.change(host("h1", 0, DRAINING), hands=None)
    unknown.change(host("h2", 9, DRAINING), hands=True)
    assert (unknown.begun, unknown.hands) == (2, None)


def test_what_began_before_the_window_is_not_counted() -> None:
    drains = Drains(START_S + 100)
    drains.change(host("h1", 0, DRAINING))
    drains.ask("h1")
    drains.emptied(START_S + 150, "h1")
    assert (drains.begun, drains.asked, drains.lengths.count) == (0, 0, 0)
