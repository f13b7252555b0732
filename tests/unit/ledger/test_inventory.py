"""Facts about a host -> when it stood there, and how healthy it was."""

import msgspec

from gpuledger.events import host
from gpuledger.ledger.facts import Known
from gpuledger.ledger.inventory import HostFact, intervals


def told(
    at_s: int, kind: type[host.HostFact] = host.Registered, source: str = "s", **keys: object
) -> HostFact:
    data = kind(**{"cluster": "c", "host": "h1", "gpus": 8, "gpu_model": "H100", **keys})
    return HostFact(data, Known(data, at_s, source, msgspec.json.encode(data)))


def spans(*facts: HostFact) -> list[tuple[int, int | None, int, str]]:
    return [(i.from_s, i.to_s, i.gpus, i.state) for i in intervals(list(facts))]


def test_a_registered_host_is_healthy_until_told_otherwise() -> None:
    assert spans(told(5)) == [(5, None, 8, "healthy")]


def test_each_state_lasts_until_the_next_and_retirement_ends_it() -> None:
    facts = [told(0), told(10, host.StateChanged, state="unhealthy"), told(20, host.StateChanged, state="healthy"),
             told(30, host.Retired)]  # fmt: skip
    assert spans(*facts) == [(0, 10, 8, "healthy"), (10, 20, 8, "unhealthy"), (20, 30, 8, "healthy")]
    assert spans(*reversed(facts)) == spans(*facts)


def test_a_host_may_come_back_with_other_gpus() -> None:
    assert spans(told(0), told(10, host.Retired), told(20, gpus=4)) == [
        (0, 10, 8, "healthy"),
        (20, None, 4, "healthy"),
    ]


def test_of_two_facts_of_one_instant_the_reconciliation_counts() -> None:
    facts = [told(0, gpus=4, source="reconcile/cmdb"), told(0, gpus=8)]
    assert spans(*facts) == spans(*reversed(facts)) == [(0, None, 4, "healthy")]


def test_a_host_without_gpus_has_no_interval() -> None:
    assert spans(told(0, gpus=0), told(10)) == [(10, None, 8, "healthy")]


BAD = {"state": "unhealthy", "gpu_uuids": ["g1"]}


def test_one_bad_gpu_costs_its_host_unless_parts_of_it_may_be_used() -> None:
    bad, clean = told(10, host.StateChanged, **BAD), told(30, host.StateChanged, state="healthy")
    assert spans(told(0), bad, clean) == [
        (0, 10, 8, "healthy"),
        (10, 30, 8, "unhealthy"),
        (30, None, 8, "healthy"),
    ]
    assert spans(told(0, partial_use=True), bad, clean) == [
        (0, 10, 8, "healthy"),
        (10, 30, 7, "healthy"),
        (10, 30, 1, "unhealthy"),
        (30, None, 8, "healthy"),
    ]


def test_partial_use_holds_from_when_it_is_said_whatever_is_concluded_of_the_same_instant() -> None:
    facts = [
        told(0),
        told(10, host.StateChanged, **BAD),
        told(20, partial_use=True),
        told(20, host.StateChanged, basis=2, **BAD),
        told(30, gpus=8),
        told(30, host.StateChanged, basis=2, **BAD),
        told(40, partial_use=False),
        told(40, host.StateChanged, basis=2, **BAD),
    ]
    assert spans(*facts) == [
        (0, 10, 8, "healthy"),
        (10, 20, 8, "unhealthy"),
        (20, 30, 7, "healthy"),
        (20, 30, 1, "unhealthy"),
        (30, 40, 7, "healthy"),
        (30, 40, 1, "unhealthy"),
        (40, None, 8, "unhealthy"),
    ]


def test_the_good_parts_of_a_host_are_what_was_said_of_the_whole() -> None:
    facts = [
        told(0, partial_use=True),
        told(10, host.StateChanged, state="maintenance"),
        told(20, host.StateChanged, **BAD),
        told(30, host.StateChanged, state="unhealthy"),
        told(40, host.StateChanged, **{**BAD, "gpu_uuids": [f"g{n}" for n in range(8)]}),
        told(50, host.Retired),
        told(60),
        told(70, host.StateChanged, **BAD),
    ]
    assert spans(*facts) == [
        (0, 10, 8, "healthy"),
        (10, 20, 8, "maintenance"),
        (20, 30, 7, "maintenance"),
        (20, 30, 1, "unhealthy"),
        (30, 40, 8, "unhealthy"),
        (40, 50, 8, "unhealthy"),
        (60, 70, 8, "healthy"),
        (70, None, 8, "unhealthy"),
    ]


def test_nothing_follows_from_nothing() -> None:
    assert spans() == []


def test_a_journalled_fact_is_read_back_as_it_was() -> None:
    fact = told(7, host.StateChanged, state="draining")
    body = msgspec.json.encode(fact.data).decode()
    read = HostFact.read("host.state_changed", body, 7, "s", fact.known.digest)
    assert read == fact
