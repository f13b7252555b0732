"""Which facts are orders: of the frozen corpus, those whose class stands in the union."""

from pathlib import Path
from typing import get_args

from gpuledger.events.envelope import decode
from gpuledger.events.orders import Order, is_order


def test_of_every_type_of_the_corpus_the_orders_and_nothing_else_are_orders(repository: Path) -> None:
    files = sorted((repository / "tests/contract/events/corpus").rglob("*.ndjson"))
    facts = [decode(line).data for file in files for line in file.read_bytes().splitlines() if line]
    orders = {type(fact) for fact in facts if is_order(fact)}
    assert orders == {type(fact) for fact in facts} & set(get_args(Order))
    assert len(orders) == len(get_args(Order))
    assert all({"by", "reason"} <= set(kind.__struct_fields__) for kind in orders)
