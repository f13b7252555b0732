"""Versions of the policy's settings, folded."""

from gpuledger.ledger.knobs import Version, in_force, in_force_alone

FOUND = [
    Version(20, 3, None, {"horizon_s": None}),
    Version(10, 2, "c", {"horizon_s": 7}),
    Version(10, 1, None, {"horizon_s": 5, "grace_s": 9}),
    Version(10, 4, None, {"grace_s": 8}),
]


def test_of_one_moment_the_later_row_counts_and_none_takes_back() -> None:
    assert in_force(FOUND, None, 9) == {}
    assert in_force(FOUND, None, 10) == {"horizon_s": 5, "grace_s": 8}
    assert in_force(FOUND, None, 20) == {"grace_s": 8}


def test_a_clusters_own_come_first() -> None:
    assert in_force(FOUND, "c", 20) == {"horizon_s": 7, "grace_s": 8}
    assert in_force(FOUND, "d", 20) == {"grace_s": 8}
    assert in_force_alone(FOUND, "c", 20) == {"horizon_s": 7}
    assert in_force_alone(FOUND, "c", 9) == {}
