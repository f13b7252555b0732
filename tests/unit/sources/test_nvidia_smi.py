"""A cell holds a value, a unit, or a reason for neither; none of the reasons is 0."""

from decimal import Decimal

import pytest

from gpuledger.kernel.errors import Refused
from gpuledger.sources.nvidia_smi import flag, local_times, number, text
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.values import Odd


@pytest.mark.parametrize(
    ("cell", "unit", "value"),
    [
        ("38 %", "%", "38"),
        ("38", "%", "38"),
        ("575 MiB", "MiB", "575"),
        ("69.85 W", "W", "69.85"),
        (" 0 % ", "%", "0"),
    ],
)
def test_a_value_is_read_with_and_without_its_unit(cell: str, unit: str, value: str) -> None:
    oddities: list[Odd] = []
    assert number("f", cell, unit, oddities) == Decimal(value)
    assert oddities == []


@pytest.mark.parametrize(
    "cell",
    [
        None,
        "",
        "N/A",
        "[N/A]",
        "[Not Supported]",
        "Insufficient Permissions",
        "[Requested functionality has been deprecated]",
    ],
)
def test_what_is_not_measured_is_missing_without_a_remark(cell: str | None) -> None:
    oddities: list[Odd] = []
    assert number("f", cell, "%", oddities) is None
    assert oddities == []


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("ERR!", "device-error"),
        ("[Unknown Error]", "device-error"),
        ("[GPU requires reset]", "device-error"),
        ("[GPU is lost]", "device-error"),
        ("12 GiB", "unknown-value"),
        ("12 W", "unknown-value"),
        ("busy", "unknown-value"),
        ("101 %", "impossible-value"),
        ("-1 %", "impossible-value"),
    ],
)
def test_what_is_odd_is_missing_with_a_remark(cell: str, code: str) -> None:
    oddities: list[Odd] = []
    assert number("f", cell, "%", oddities) is None
    assert [found for found, _ in oddities] == [code]


def test_flags_and_texts() -> None:
    assert [flag(cell) for cell in ("Yes", " no ", "[N/A]", None)] == [True, False, None, None]
    assert [text(cell) for cell in (" GPU-1 ", "[N/A]", None)] == ["GPU-1", "", ""]


def test_local_times_need_a_zone() -> None:
    with pytest.raises(Refused, match="local times") as caught:
        local_times(ImportOptions())
    assert "--tz" in caught.value.hint
    assert (
        local_times(ImportOptions(timezone="Europe/Berlin")).read("t", "2026-07-14 08:12:38")[0]
        == 1_784_009_558
    )
