"""Rows of waste as they are published; sums and rights are tested over HTTP."""

from gpuledger.warehouse.waste import AMOUNTS, WasteRow


def _row(budget: int | None, **amounts: int) -> dict[str, object]:
    known = dict.fromkeys(AMOUNTS, 0) | {f"{name}_gpu_ms": amount for name, amount in amounts.items()}
    return WasteRow("a", "c", "a", known, 1, budget).as_json()


def test_parts_of_nothing_are_unknown() -> None:
    row = _row(None, allocated=10)
    assert (row["coverage"], row["idle_of_sampled"], row["squatted_of_budget"]) == ("0.0000", None, None)


def test_parts_are_of_what_was_measured_and_of_the_budget() -> None:
    row = _row(200, allocated=100, sampled=80, idle=20, squatted=10)
    assert (row["coverage"], row["idle_of_sampled"], row["squatted_of_budget"]) == (
        "0.8000",
        "0.2500",
        "0.0500",
    )
