"""Which accounts lie in a subtree, as the database is asked for them."""

import sqlalchemy as sa

from gpuledger.warehouse.subtree import is_below
from gpuledger.warehouse.tables import waste_day


def _text(account: str) -> str:
    clause = is_below(waste_day.c.account, account)
    return str(
        clause.compile(compile_kwargs={"literal_binds": True}, dialect=sa.dialects.postgresql.dialect())
    )


def test_an_account_and_what_is_below_it_but_no_namesake() -> None:
    assert _text("org/vision") == (
        "warehouse.waste_day.account = 'org/vision' OR starts_with(warehouse.waste_day.account, 'org/vision/')"
    )


def test_what_an_inner_account_owns_itself_stands_under_its_own_name() -> None:
    assert _text("org/vision/~own") == "warehouse.waste_day.account = 'org/vision'"
