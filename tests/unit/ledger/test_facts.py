"""Which of two contradictory facts counts."""

import pytest

from gpuledger.events.workload import Ended, Preempted, Submitted
from gpuledger.ledger.facts import Known, source_rank, winner


def ended(
    at_s: int, *, source: str = "slurm/jobcomp", estimated: bool | None = None, digest: bytes = b""
) -> Known:
    return Known(
        Ended(cluster="c", workload="w", run="r", reason="x", estimated=estimated), at_s, source, digest
    )


def submitted(account: str, user: str, digest: bytes) -> Known:
    return Known(
        Submitted(cluster="c", workload="w", account=account, user=user, gpus_milli=1), 0, "s", digest
    )


@pytest.mark.parametrize(
    ("loser", "counts"),
    [
        (ended(10), ended(20)),
        (ended(99), ended(20, source="reconcile/sacct")),
        (ended(99, source="reconcile/sacct", estimated=True), ended(20)),
        (ended(99, estimated=True), ended(20, estimated=False)),
    ],
    ids=[
        "the later",
        "a reconciliation",
        "what was measured, even against a reconciliation",
        "not an estimate",
    ],
)
def test_a_fact_beats_another_whichever_came_first(loser: Known, counts: Known) -> None:
    assert winner([loser, counts]) is counts
    assert winner([counts, loser]) is counts


def test_of_facts_of_one_instant_the_content_decides_and_not_the_digest() -> None:
    a, b = submitted("org/a", "u-1", b"\xff"), submitted("org/b", "u-2", b"\x00")
    assert winner([a, b]) is b
    assert winner([b, a]) is b


def test_of_facts_that_differ_in_the_person_alone_the_digest_decides() -> None:
    one, other = submitted("org/a", "u-1", b"\xff"), submitted("org/a", "u-2", b"\x00")
    assert winner([one, other]) is one
    assert winner([other, one]) is one


def test_stops_of_one_instant_are_ranked_though_they_read_alike() -> None:
    preempted = Known(Preempted(cluster="c", workload="w", run="r", reason="x"), 20, "slurm/jobcomp", b"")
    assert winner([preempted, ended(20)]) is winner([ended(20), preempted]) is preempted


def test_nothing_known_has_no_winner_and_one_fact_wins_alone() -> None:
    only = ended(1)
    assert winner([]) is None
    assert winner([only]) is only


def test_only_a_reconciliation_is_believed_above_a_stream() -> None:
    assert source_rank("reconcile/sacct") > source_rank("slurm/jobcomp") == source_rank("trace/philly")


def versioned(at_s: int, version: int | None, account: str = "org/a") -> Known:
    fact = Submitted(cluster="c", workload="w", account=account, user="u", gpus_milli=1, version=version)
    return Known(fact, at_s, "slurm/alpha", b"")


def test_the_furthest_version_of_a_record_counts_whatever_its_time() -> None:
    early = Known(Ended(cluster="c", workload="w", run="r", reason="x", version=4), 10, "slurm/alpha", b"")
    late = Known(Ended(cluster="c", workload="w", run="r", reason="x", version=3), 99, "slurm/alpha", b"")
    assert winner([early, late]) is winner([late, early]) is early
    assert winner([late, ended(500, source="slurm/alpha")]) is late
    assert winner([early, ended(5, source="reconcile/sacct")]) is not early


def test_of_submissions_of_records_the_first_counts_and_of_one_the_furthest_version() -> None:
    first, edited, again = versioned(10, 3), versioned(10, 4, "org/b"), versioned(50, 4)
    assert winner([first, again]) is winner([again, first]) is first
    assert winner([first, edited, again]) is winner([again, edited, first]) is edited


def test_a_submission_that_is_told_anew_counts() -> None:
    before, after = versioned(10, None), versioned(50, None)
    assert winner([before, after]) is winner([after, before]) is after
    assert winner([versioned(10, 4), after]) is winner([after, versioned(10, 4)]) is after
