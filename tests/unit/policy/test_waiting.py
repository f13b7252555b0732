"""Why a workload waits, out of a recorded cycle."""

from gpuledger.policy.cadence import Cadence
from gpuledger.policy.state import PolicyConfig
from gpuledger.policy.waiting import Decided, chain_of, date_of


def allocation(
    account: str, ratio: str | None, demand: object = 8, share_ppm: int = 100_000
) -> dict[str, object]:
    return {
        "account": account, "ratio": ratio, "demand_gpus": demand, "used_gpu_ms": 1, "entitled_gpu_ms": 2,
        "share_ppm": share_ppm,
    }  # fmt: skip


ALLOCATIONS = [
    allocation("org", "0.900000"),
    allocation("org/b", "1.100000"),
    allocation("org/b/x", "0.500000"),
    allocation("org/b/y", "1.500000"),
    allocation("org/a", "0.700000"),
    allocation("org/c", "0.200000", demand=0),
    allocation("org/d", None),
    allocation("org/e", "0.300000", demand="0.500"),
    allocation("lab", "0.100000"),
]


def test_the_chain_goes_from_the_root_to_the_account_and_names_siblings_with_lower_ratios() -> None:
    chain = chain_of("org/b/x", ALLOCATIONS)
    assert [(level.account, level.ratio) for level in chain] == [
        ("org", "0.900000"), ("org/b", "1.100000"), ("org/b/x", "0.500000"),
    ]  # fmt: skip
    # c asks for nothing, d is entitled to nothing.
    assert [level.before for level in chain] == [
        (("lab", "0.100000"),), (("org/e", "0.300000"), ("org/a", "0.700000")), (),
    ]  # fmt: skip


def test_what_counts_at_par_is_part_of_a_level_for_without_it_the_ratio_cannot_be_computed_by_hand() -> None:
    # A minute old, a tenth of 100 GPUs: (0 + 1679.833) / (0.167 + 1679.833 + 80) = 0.954451, not 0 / 80.167.
    young = {**allocation("org", "0.954451"), "par_gpu_ms": 6_047_400_000}
    (level,) = chain_of("org", [young])
    assert level.par_gpu_ms == level.as_json()["par_gpu_ms"] == 6_047_400_000
    (recorded_before_there_was_any,) = chain_of("org", [allocation("org", "0.900000")])
    assert recorded_before_there_was_any.par_gpu_ms == 0


def test_who_is_entitled_to_nothing_comes_after_all_who_are() -> None:
    (_, level) = chain_of("org/d", ALLOCATIONS)
    assert [account for account, _ in level.before] == ["org/e", "org/a", "org/b"]


def test_a_share_of_0_comes_after_all_others_whatever_the_ratios() -> None:
    poor = allocation("org/z", "0.000000", share_ppm=0)
    (_, level) = chain_of("org/z", [*ALLOCATIONS, poor])
    assert [account for account, _ in level.before] == ["org/e", "org/a", "org/b"]
    assert level.as_json()["share_ppm"] == 0
    (_, other) = chain_of("org/b", [*ALLOCATIONS, poor])
    assert [account for account, _ in other.before] == ["org/e", "org/a"]


def test_an_account_that_the_cycle_did_not_know_is_left_out() -> None:
    assert [level.account for level in chain_of("org/new", ALLOCATIONS)] == ["org"]


def test_a_reservation_gives_a_date_that_counts_grace_and_cycles() -> None:
    config = PolicyConfig(grace_s=100)
    kept = {
        "workload": "w",
        "hosts": {"h": 8000},
        "at": "1970-01-01T01:00:00Z",
        "kind": "bound",
        "leaving": [],
    }
    assert date_of("w", [kept], Cadence(60, 60), 60, config) == 3600 + 60 + 100 + 60
    promised = {
        **kept,
        "kind": "promise",
        "at": "1970-01-01T00:02:40Z",
        "leaving": [{"workload": "v", "run": "1"}],
    }
    assert date_of("w", [promised], Cadence(60, 60), 60, config) == 160 + 60
    assert date_of("v", [kept], Cadence(60, 60), 60, config) is None


def test_a_decision_is_published_with_its_place() -> None:
    found = Decided(cycle="c@1", at_s=0, action="wait", reason="Waits.", numbers={"position": 3}).as_json()
    assert (found["place"], found["starts_by"], found["certainty"]) == (3, None, None)
