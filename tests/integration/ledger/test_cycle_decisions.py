"""Every decision of recent cycles, in pieces."""

from typing import Any

from tests.integration.ledger.books import CLUSTER, Ledger

from gpuledger.database.engine import reading, writing
from gpuledger.ledger import cycle_decisions


def said(told: list[dict[str, Any]]) -> list[cycle_decisions.Said]:
    return [cycle_decisions.Said.of(decision) for decision in told]


def decisions(count: int) -> list[dict[str, Any]]:
    return [{"workload": f"w{n % (count - 1)}", "action": "wait", "numbers": {"n": n}} for n in range(count)]


def test_all_come_back_in_their_order_and_those_of_one_workload_alone(ledger: Ledger) -> None:
    told = decisions(3 * cycle_decisions.PIECE)
    with writing(ledger.engine) as writer:
        cycle_decisions.keep(writer, CLUSTER, 7, 600, said(told))
    with reading(ledger.engine) as reader:
        assert cycle_decisions.every(reader, CLUSTER, 7) == told
        assert cycle_decisions.of_workload(reader, CLUSTER, 7, "w0") == [told[0], told[-1]]
        assert cycle_decisions.of_workload(reader, CLUSTER, 7, "w5") == [told[5]]
        assert cycle_decisions.of_workload(reader, CLUSTER, 7, "nobody") == []
        assert cycle_decisions.of_workload(reader, CLUSTER, 8, "w5") is None
        assert cycle_decisions.every(reader, CLUSTER, 8) is None


def test_a_cycle_that_decided_nothing_is_kept_too(ledger: Ledger) -> None:
    with writing(ledger.engine) as writer:
        cycle_decisions.keep(writer, CLUSTER, 7, 600, [])
    with reading(ledger.engine) as reader:
        assert cycle_decisions.every(reader, CLUSTER, 7) == []
        assert cycle_decisions.of_workload(reader, CLUSTER, 7, "w5") == []


def test_what_is_old_is_forgotten_except_for_the_newest_cycle(ledger: Ledger) -> None:
    with writing(ledger.engine) as writer:
        for seq, at_s in ((1, 100), (2, 300), (3, 200)):
            cycle_decisions.keep(writer, CLUSTER, seq, at_s, said(decisions(2)))
        cycle_decisions.keep(writer, "beta", 1, 100, said(decisions(2)))
        cycle_decisions.forget(writer, CLUSTER, 250, 3)
    assert ledger.rows("SELECT book, seq FROM ledger.cycle_decisions ORDER BY 1, 2") == [
        (CLUSTER, 2), (CLUSTER, 3), ("beta", 1),
    ]  # fmt: skip
