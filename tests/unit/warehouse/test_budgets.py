"""Budget versus actual: which periods there are, and what is told of one."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import make_engine, reading
from gpuledger.kernel.errors import NotFound
from gpuledger.warehouse import budgets
from gpuledger.warehouse.tables import budget_vs_actual

KEYS = [
    ("alpha", "2026-03", "alpha/b"),
    ("alpha", "2026-03", "alpha/a"),
    ("alpha", "2026-02", "alpha/a"),
    ("beta", "2026-04", "beta"),
]


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def filled(engine: sa.Engine) -> sa.Engine:
    amounts = {c.name: 0 for c in budget_vs_actual.c if not c.nullable and c.name.endswith("_gpu_ms")}
    with engine.begin() as connection:
        connection.execute(
            sa.insert(budget_vs_actual),
            [
                {
                    "cluster": c,
                    "period": p,
                    "account": a,
                    **amounts,
                    "owed_gpu_ms": None if c == "beta" else 7,
                }
                for c, p, a in KEYS
            ],
        )
    return engine


def test_periods_and_rows(filled: sa.Engine) -> None:
    with reading(filled) as reader:
        assert budgets.periods(reader) == {"alpha": ["2026-02", "2026-03"], "beta": ["2026-04"]}
        assert [r["account"] for r in budgets.budget_rows(reader, "alpha", "2026-03")] == [
            "alpha/a",
            "alpha/b",
        ]
        assert len(budgets.budget_rows(reader, None, None)) == 4


def test_without_a_roll_up_there_is_no_period(engine: sa.Engine) -> None:
    with reading(engine) as reader:
        assert budgets.report(reader, None, None, ()) == budgets.BudgetReport(None, [], [])


def test_the_newest_period_unless_another_is_asked_for(filled: sa.Engine) -> None:
    with reading(filled) as reader:
        newest = budgets.report(reader, "alpha", None, ())
        assert (newest.period, newest.periods) == ("2026-03", ["2026-02", "2026-03"])
        assert [row["account"] for row in newest.rows] == ["alpha/a", "alpha/b"]
        assert [row["period"] for row in budgets.report(reader, "alpha", "2026-02", ()).rows] == ["2026-02"]
        assert budgets.report(reader, None, None, ()).period == "2026-04"


def test_a_period_that_is_not_there_is_told_with_those_that_are(filled: sa.Engine) -> None:
    with reading(filled) as reader, pytest.raises(NotFound, match="no budget of alpha in 2026-04") as refused:
        budgets.report(reader, "alpha", "2026-04", ())
    assert refused.value.hint == "periods there are: 2026-02 to 2026-03; gpuledger rollup makes newer ones"


def test_what_an_inner_account_owns_is_a_leaf_and_what_is_null_has_a_reason(filled: sa.Engine) -> None:
    with reading(filled) as reader:
        (row,) = budgets.report(reader, "beta", None, {"beta"}).rows
        assert (row["account"], row["reason"]) == ("beta/~own", budgets.NO_INVENTORY)
        assert {row["reason"] for row in budgets.report(reader, "alpha", None, {"beta"}).rows} == {None}
