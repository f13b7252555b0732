"""Rows of waits as they are published; that they are of all waits together is tested over HTTP."""

from gpuledger.warehouse.waits import QUANTILES, WaitsRow, _place


def _row(key: str) -> WaitsRow:
    return WaitsRow(key, {"request_count": 3}, {"p50_s": 1, "p90_s": None, "p99_s": None}, 9)


def test_sizes_stand_from_the_smallest_up() -> None:
    keys = ["17-32", "2", "<1", "3-4", "1", "9-16"]
    assert sorted(keys, key=lambda key: _place(_row(key))) == ["<1", "1", "2", "3-4", "9-16", "17-32"]


def test_a_row_has_every_quantile_beside_its_counts() -> None:
    assert _row("1").as_json() == {
        "key": "1", "request_count": 3, "p50_s": 1, "p90_s": None, "p99_s": None, "longest_s": 9,
    }  # fmt: skip
    assert list(QUANTILES.values()) == sorted(QUANTILES.values()), "the estimate is asked in ascending order"
