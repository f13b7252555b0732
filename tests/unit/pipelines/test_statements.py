import re
from importlib import resources

import pytest
import sqlalchemy as sa

from gpuledger_pipelines.statements import statement

ROOT = resources.files("gpuledger_pipelines")
STATEMENTS = sorted(
    f"{subject.name}/{file.name.removesuffix('.sql')}"
    for subject in (ROOT / "defs").iterdir()
    if (subject / "sql").is_dir()
    for file in (subject / "sql").iterdir()
)


def test_there_are_statements() -> None:
    assert len(STATEMENTS) == 16


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_include_is_in_place(name: str) -> None:
    assert "-- include:" not in statement(name)


@pytest.mark.parametrize("name", STATEMENTS)
def test_only_the_read_views_and_the_warehouse_are_named(name: str) -> None:
    """The ledger's own tables are not an interface."""
    assert not re.findall(r"\b(?:ledger|side|telemetry)\.\w+", statement(name))


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_parameter_is_known(name: str) -> None:
    known = {
        "cluster", "from_s", "to_s", "now_s", "bucket_s", "versions", "starts", "ends", "portion_versions",
        "accounts", "numerators", "denominators", "days", "periods", "idle_below_ppm", "low_below_ppm",
        "squatted_after_s", "seq", "org_seq", "beyond_s", "first_period", "last_period", "history_s",
        "of_periods", "lows", "middles", "highs", "histories", "left_overs", "reasons",
        "seats", "seat_workloads", "seat_runs", "seat_froms", "seat_tos",
    }  # fmt: skip
    assert set(sa.text(statement(name)).compile().params) <= known
