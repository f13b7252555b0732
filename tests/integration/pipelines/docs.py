"""A table of two accounts that breaks a law, tried and kept in a folder of Data Docs; no server is needed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from gpuledger_pipelines.data_docs.folder import DataDocs, Tried
from gpuledger_pipelines.expectations.shape import Law, no_rows
from gpuledger_pipelines.gate import validate

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

NASTY = "c/<b id='hurt'>a</b>"
HOLDS = "no more is occupied than is installed"
FAILS = "the states sum to what was installed, and the residual is 0"


def suite() -> "list[Expectation]":
    """One expectation that holds, one that does not, and the columns that are unique."""
    from great_expectations.expectations.core.expect_compound_columns_to_be_unique import (
        ExpectCompoundColumnsToBeUnique,
    )

    return [
        ExpectCompoundColumnsToBeUnique(column_list=["account", "gpu_ms"]),
        no_rows(HOLDS, "SELECT * FROM batch WHERE gpu_ms > 10"),
        no_rows(FAILS, "SELECT account, gpu_ms FROM batch WHERE gpu_ms < 0", law=Law.PARTITION),
    ]


def keep(docs: DataDocs, tried: Tried, at: Path, rows: Sequence[tuple[str, int]]) -> Path:
    """Try the suite on the rows, in a database in a file, and keep what is said; return the page."""
    url = f"sqlite:///{at}"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE IF NOT EXISTS told (account TEXT, gpu_ms INTEGER)"))
        connection.execute(sa.text("DELETE FROM told"))
        for account, gpu_ms in rows:
            connection.execute(sa.text("INSERT INTO told VALUES (:a, :g)"), {"a": account, "g": gpu_ms})
    engine.dispose()
    expectations = suite()
    result = validate(url, "SELECT * FROM told", expectations, ["account"])
    return docs.keep(tried, result, expectations)
