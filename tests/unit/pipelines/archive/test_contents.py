"""What is added up beside a file."""

import pyarrow as pa

from gpuledger_pipelines.archive.contents import DATASETS, TELEMETRY, USAGE


def test_usage_comes_to_its_gpu_time() -> None:
    rows = [(1_000, 0, 900), (2_500, 100, 101), (7, 5, 10)]
    table = pa.Table.from_pylist(
        [
            {"workload": "w", "run": "r", "account": "a", "class": "allocated", "user_token": "u", "hosts": ["h"],
             "gpus_milli": milli, "from_s": from_s, "to_s": to_s}
            for milli, from_s, to_s in rows
        ],
        schema=USAGE.schema,
    )  # fmt: skip
    sums: dict[str, int] = {}
    USAGE.add_up(table, sums)
    USAGE.add_up(table.slice(0, 1), sums)
    assert sums == {"gpu_ms": 900_000 + 2_500 + 35 + 900_000}


def test_telemetry_is_added_up_by_rung_and_what_has_an_owner_beside_it() -> None:
    rows = [("gpu_util", "a", 300_000, 7), ("gpu_util", None, 100, 1), ("sm_active", "a", 5, 2)]
    table = pa.Table.from_pylist(
        [
            {"gpu": "g", "rung": rung, "bucket_s": 0, "workload": "w", "run": "r", "account": account,
             "class": account and "allocated", "sampled_gpu_ms": sampled, "used_gpu_upms": used}
            for rung, account, sampled, used in rows
        ],
        schema=TELEMETRY.schema,
    )  # fmt: skip
    sums: dict[str, int] = {}
    TELEMETRY.add_up(table, sums)
    assert sums == {
        "gpu_util/sampled_gpu_ms": 300_100, "gpu_util/used_gpu_upms": 8, "gpu_util/owned_sampled_gpu_ms": 300_000,
        "sm_active/sampled_gpu_ms": 5, "sm_active/used_gpu_upms": 2, "sm_active/owned_sampled_gpu_ms": 5,
    }  # fmt: skip


def test_every_column_says_what_it_is() -> None:
    for dataset in DATASETS.values():
        assert all(field.metadata[b"comment"] for field in dataset.schema)
        assert "ORDER BY" in dataset.statement
