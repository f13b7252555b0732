"""What a quote rests on; that bounds are kept: tests/property/policy/test_quotes.py."""

from dataclasses import replace

import pytest
from tests.unit.policy.forests import AT_S, account, cluster, hosts, pending, run

from gpuledger.policy.cadence import Cadence
from gpuledger.policy.cycle import ClusterState, PolicyConfig, Reservation, ReservationKind
from gpuledger.policy.quotes import Certainty, Quote, Request, quote

CONFIG = PolicyConfig(floor_alpha_permille=1000)
"""By ratio alone, without a floor."""
CADENCE = Cadence(AT_S - 30, 60)
HOUR_S = 3600
ASKED = Request(account="a", gpus_milli=4000, minimum_runtime_s=HOUR_S)


def free_4(*late: str, eligible_in_s: int = 0) -> ClusterState:
    """4 of 8 GPUs are free; workloads of b, which used less than a, become eligible in some seconds."""
    queue = [pending(name, "b", gpus=4, eligible_at_s=AT_S + eligible_in_s) for name in late]
    running = [run("b", gpus=4, name="r", hosts={"h0": 4}, protected_until_s=AT_S + HOUR_S)]
    return cluster(
        [account("a", used=100), account("b", demand=4 + 4 * len(late))], queue, running, on=hosts(8)
    )


def ask(state: ClusterState, config: PolicyConfig = CONFIG) -> Quote:
    return quote(state, config, ASKED, cadence=CADENCE)


def test_what_fits_starts_by_the_next_cycle() -> None:
    found = ask(free_4())
    assert (found.certainty, found.starts_by_s, found.placement) == (Certainty.BOUND, AT_S + 60, {"h0": 4000})


@pytest.mark.parametrize(
    ("late", "eligible_in_s", "starts_by_s", "certainty"),
    [
        ((), 0, AT_S + 60, Certainty.BOUND),
        (("one",), 61, AT_S + 60, Certainty.BOUND),
        (("one",), 60, AT_S + HOUR_S + 60 + CONFIG.grace_s + 60, Certainty.BOUND),
        (("one", "two"), 60, AT_S, Certainty.ESTIMATE),
    ],
)
def test_who_becomes_eligible_before_the_next_cycle_may_come_first(
    late: tuple[str, ...], eligible_in_s: int, starts_by_s: int, certainty: Certainty
) -> None:
    """One would take the free GPUs, and what was asked for the reservation; of two the second would have that, too."""
    found = ask(free_4(*late, eligible_in_s=eligible_in_s))
    assert (found.starts_by_s, found.certainty) == (starts_by_s, certainty)
    told = "A cycle that comes only at 1970-01-12T13:47:40Z decides otherwise: Waits at place 3"
    assert (told in found.reason) is (certainty is Certainty.ESTIMATE)


def test_where_credits_divide_it_counts_as_demand() -> None:
    """With it each is issued half of the GPUs: b runs as many, so a comes first, though it used more."""
    found = ask(free_4("one"), PolicyConfig(division="credits"))
    assert (found.position, found.certainty) == (1, Certainty.BOUND)
    assert ask(free_4("one")).position == 2


def test_a_start_that_a_reservation_will_be_too_near_for_is_no_bound() -> None:
    """All of h0 is w's in an hour and 30 s: a start now is over in time, one by the next cycle is not."""
    kept = Reservation(
        workload="w", placement={"h0": 8000}, at_s=AT_S + HOUR_S + 30, kind=ReservationKind.BOUND
    )
    state = cluster(
        [account("a"), account("b")], [pending("w", "b", gpus=8)], on=hosts(8), reservations=[kept]
    )
    busy = [run("b", gpus=1, name="r", hosts={"h0": 1}, protected_until_s=AT_S + HOUR_S)]
    found = ask(replace(state, running=tuple(busy)))
    assert (found.certainty, found.starts_by_s) == (Certainty.ESTIMATE, AT_S)
    assert "decides otherwise: Waits at place" in found.reason
