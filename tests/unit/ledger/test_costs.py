"""What a workload cost, from what is posted for it."""

import datetime as dt

from gpuledger.ledger.charges import PHYSICAL, WEIGHTED, Key
from gpuledger.ledger.costs import Cost, add_up

DAY, NEXT = dt.date(2027, 1, 15), dt.date(2027, 1, 16)


def key(code: str, pot: str, commodity: str = PHYSICAL, day: dt.date = DAY) -> Key:
    return Key(code, commodity, "org", pot, "r1", day)


def test_charges_of_hold_and_budget_are_added_and_weights_are_left_out() -> None:
    posted = [
        (key("charge", "held"), 5),
        (key("charge", "budget"), 7),
        (key("charge", "budget", WEIGHTED), 7000),
        (key("unallocated", "free"), 3),
        (key("credit", "spent"), 2),
        (key("credit", "issue", WEIGHTED), 2000),
        (key("hold", "budget", WEIGHTED), 99),
    ]
    assert add_up(posted, DAY) == Cost(12, 3, 2)


def test_later_days_do_not_count() -> None:
    posted = [(key("charge", "budget"), 5), (key("charge", "budget", day=NEXT), 7)]
    assert add_up(posted, DAY).charged_gpu_ms == 5
    assert add_up(posted, NEXT).charged_gpu_ms == 12
