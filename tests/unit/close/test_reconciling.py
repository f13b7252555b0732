"""What a close keeps of a comparison: how much was compared, what differs, and a digest of all of it."""

from gpuledger.close.reconciling import of_cluster, summary
from gpuledger.reconcile.comparison import Amounts, Class, Difference, RunKey
from gpuledger.reconcile.reconciling import NO_RUN, Reconciliation


def compared(gpu_ms: int = 5) -> Reconciliation:
    found = Reconciliation()
    for cluster, name in (("alpha", "w1"), ("alpha", "w2"), ("beta", "w1")):
        found.amounts[RunKey(cluster, name, "r")] = Amounts(gpu_ms, 5)
    for cluster, klass in (("alpha", Class.LOST), ("beta", Class.LATE)):
        key = RunKey(cluster, "w1", "r")
        found.differences[key] = Difference(klass, key, gpu_ms, 5, "differs")
    return found


def test_it_counts_one_cluster_alone() -> None:
    told = summary(compared(), "alpha")
    assert (told.runs, told.ledger_gpu_ms, told.record_gpu_ms) == (2, 10, 10)
    assert (told.differences, told.unexplained) == ({"lost-event": 1}, 1)
    assert summary(compared(), "beta").unexplained == 0


def test_its_digest_is_of_every_amount_and_difference() -> None:
    assert summary(compared(), "alpha") == summary(compared(), "alpha")
    other = compared()
    other.differences.clear()
    digests = {summary(found, "alpha").digest for found in (compared(), compared(6), other)}
    assert len(digests) == 3


def test_what_cannot_be_read_of_the_record_is_unexplained() -> None:
    found = compared()
    found.unreadable.append(Difference(Class.UNREADABLE, NO_RUN, 0, 0, "line 3"))
    assert summary(found, "beta").unexplained == 1
    assert [each.klass for each in of_cluster(found, "beta")] == [Class.UNREADABLE, Class.LATE]
