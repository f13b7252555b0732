"""The warehouse's tables keep the promises that their readers build on."""

import pytest
import sqlalchemy as sa

from gpuledger.database.metadata import Instant
from gpuledger.warehouse import tables

ALL = [getattr(tables, name) for name in tables.__all__]


@pytest.mark.parametrize("table", ALL, ids=str)
def test_every_table_lies_in_the_warehouse_under_its_own_name(table: sa.Table) -> None:
    assert table.schema == "warehouse"
    assert getattr(tables, table.name) is table


@pytest.mark.parametrize("table", ALL, ids=str)
def test_every_amount_is_a_whole_number_of_gpu_ms(table: sa.Table) -> None:
    numbers = {column.name for column in table.columns if isinstance(column.type, sa.Integer)}
    amounts = {column.name for column in table.columns if column.name.endswith("gpu_ms")}
    others = {name for name in numbers if name.endswith(("_count", "_s", "_seq"))}
    assert numbers == amounts | others
    assert all(isinstance(table.columns[name].type, sa.BigInteger) for name in amounts)


@pytest.mark.parametrize("table", ALL, ids=str)
def test_every_table_and_column_says_what_it_is_and_amounts_say_their_unit(table: sa.Table) -> None:
    assert table.comment
    for column in table.columns:
        assert column.comment, column.name
        assert column.comment.startswith("gpu_ms: ") == column.name.endswith("gpu_ms"), column.name


@pytest.mark.parametrize("table", ALL, ids=str)
def test_instants_end_in_at_and_have_a_zone(table: sa.Table) -> None:
    for column in table.columns:
        assert isinstance(column.type, Instant) == column.name.endswith("_at"), column.name


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ("usage_bucket", ["cluster", "bucket_at", "account", "class"]),
        ("usage_hour", ["cluster", "hour_at", "account", "class"]),
        ("owed_hour", ["cluster", "hour_at", "account"]),
        ("gpu_bucket", ["cluster", "bucket_at"]),
        ("gpu_hour", ["cluster", "hour_at"]),
        ("watermark", ["cluster"]),
        ("layer_metrics_hour", ["cluster", "hour_at"]),
        ("layer_metrics_day", ["cluster", "day"]),
        ("budget_vs_actual", ["cluster", "period", "account"]),
        ("host_health_day", ["cluster", "day", "host"]),
        ("waste_day", ["cluster", "day", "account", "user_token"]),
        ("queue_wait_day", ["cluster", "day", "account", "class", "size", "turn"]),
    ],
)
def test_a_row_is_known_by_its_key_from_the_cluster_on(table: str, key: list[str]) -> None:
    assert [column.name for column in getattr(tables, table).primary_key.columns] == key


@pytest.mark.parametrize("name", ["owed_hour", "layer_metrics_hour", "layer_metrics_day", "budget_vs_actual"])
def test_without_inventory_what_is_owed_is_null_and_what_was_delivered_is_not(name: str) -> None:
    columns = getattr(tables, name).columns
    assert columns["owed_gpu_ms"].nullable
    assert name == "budget_vs_actual" or not columns["delivered_gpu_ms"].nullable


@pytest.mark.parametrize("table", [tables.usage_bucket, tables.usage_hour], ids=str)
def test_the_class_is_klass_in_python_and_class_in_the_database(table: sa.Table) -> None:
    assert table.columns["klass"].name == "class"


def test_hours_and_days_have_the_same_layers() -> None:
    def layers(table: sa.Table) -> list[tuple[str, bool | None]]:
        return [(column.name, column.nullable) for column in table.columns if not column.primary_key]

    assert layers(tables.layer_metrics_hour) == layers(tables.layer_metrics_day)
