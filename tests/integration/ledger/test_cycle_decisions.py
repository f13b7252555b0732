"""Every decision of recent cycles, in pieces."""

from tests.integration.ledger.books import CLUSTER, Ledger

from gpuledger.database.engine import reading, writing
from gpuledger.ledger import cycle_decisions

PIECES = [b"{zero}", b"{one}", b"{two}"]


def test_all_come_back_in_their_order_and_that_of_one_workload_alone(ledger: Ledger) -> None:
    with writing(ledger.engine) as writer:
        cycle_decisions.keep(writer, CLUSTER, 7, 600, PIECES)
    with reading(ledger.engine) as reader:
        assert cycle_decisions.every(reader, CLUSTER, 7) == PIECES
        for workload in ("w0", "w1", "w2", "w3", "\u00e9"):
            own = PIECES[cycle_decisions.piece_of(workload, 3)]
            assert cycle_decisions.with_workload(reader, CLUSTER, 7, workload) == own
        assert cycle_decisions.with_workload(reader, CLUSTER, 8, "w0") is None
        assert cycle_decisions.every(reader, CLUSTER, 8) == []


def test_what_is_old_is_forgotten_except_for_the_newest_cycle(ledger: Ledger) -> None:
    with writing(ledger.engine) as writer:
        for seq, at_s in ((1, 100), (2, 300), (3, 200)):
            cycle_decisions.keep(writer, CLUSTER, seq, at_s, PIECES[:1])
        cycle_decisions.keep(writer, "beta", 1, 100, PIECES[:1])
        cycle_decisions.forget(writer, CLUSTER, 250, 3)
    assert ledger.rows("SELECT book, seq FROM ledger.cycle_decisions ORDER BY 1, 2") == [
        (CLUSTER, 2), (CLUSTER, 3), ("beta", 1),
    ]  # fmt: skip


def test_what_no_cycle_stands_for_is_forged(ledger: Ledger) -> None:
    with writing(ledger.engine) as writer:
        cycle_decisions.keep(writer, CLUSTER, 7, 600, PIECES)
    ledger.change("UPDATE ledger.cycle_decisions SET decisions = 'torn' WHERE n = 1")
    with reading(ledger.engine) as reader:
        assert cycle_decisions.forged(reader) == [(CLUSTER, 7)]
