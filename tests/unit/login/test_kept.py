"""The file that login nodes keep, and the lines that come of it."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.kernel.amounts import GPU_MS_PER_GPU_HOUR
from gpuledger.login import kept

AT = dt.datetime(2026, 12, 8, 9, tzinfo=dt.UTC)


def _row(available: int, held: int = 0) -> dict[str, Any]:
    return {
        "cluster": "alpha", "period": "2026-12", "given_gpu_ms": 3_000 * GPU_MS_PER_GPU_HOUR,
        "held_gpu_ms": held * GPU_MS_PER_GPU_HOUR, "available_gpu_ms": available * GPU_MS_PER_GPU_HOUR,
    }  # fmt: skip


def _file(folder: Path, accounts: dict[str, int]) -> Path:
    rows = {
        account: [_row(available, held=20 if account == "org/b" else 0)]
        for account, available in accounts.items()
    }
    file = folder / "login.json"
    file.write_text(json.dumps(kept.document(rows, {"ines": list(accounts)}, AT)))
    return file


def test_the_account_with_least_left_comes_first_and_few_are_shown(tmp_path: Path) -> None:
    file = _file(tmp_path, {"org/a": 1204, "org/b": -5, "org/c": 70, "org/d": 3000, "org/e": 2999})
    assert list(kept.lines_for("ines", file, AT)) == [
        "org/b: -5.0 of 3,000.0 GPU-hours left on alpha in 2026-12, 20.0 more set aside for work that was admitted",
        "org/c: 70.0 of 3,000.0 GPU-hours left on alpha in 2026-12",
        "org/a: 1,204.0 of 3,000.0 GPU-hours left on alpha in 2026-12",
        "  and 2 more accounts: gbalance",
        "  as of 2026-12-08 09:00 UTC; gbalance shows it as it is now",
    ]


def test_who_has_no_account_is_told_nothing(tmp_path: Path) -> None:
    assert not list(kept.lines_for("nobody", _file(tmp_path, {"org/a": 1}), AT))


@pytest.mark.parametrize(("hours", "said"), [(25, "UTC; "), (27, "UTC, 1 days ago"), (80, "UTC, 3 days ago")])
def test_a_timer_that_stopped_shows(tmp_path: Path, hours: int, said: str) -> None:
    *_, last = kept.lines_for("ines", _file(tmp_path, {"org/a": 1}), AT + dt.timedelta(hours=hours))
    assert said in last


@given(st.integers(-(10**15), 10**15))
def test_hours_are_rounded_to_the_nearest_tenth(gpu_ms: int) -> None:
    shown = float(kept._hours(gpu_ms).replace(",", ""))
    assert abs(shown * GPU_MS_PER_GPU_HOUR - gpu_ms) <= GPU_MS_PER_GPU_HOUR / 20 + abs(gpu_ms) * 1e-12
    assert kept._hours(0) == "0.0"


def test_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_text('{"version": 9}')
    with pytest.raises(ValueError, match="version 9, not 1"):
        list(kept.lines_for("ines", tmp_path / "f", AT))


def test_the_file_is_where_the_environment_says() -> None:
    assert kept.file_named({}) == kept.USUAL
    assert kept.file_named({kept.FILE: "/else"}) == Path("/else")
