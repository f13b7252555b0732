"""Figures as people read them, and as a spreadsheet does."""

import csv
import io
from decimal import Decimal

from gpuledger_dashboards import figures


def test_hours_have_one_decimal_and_thousands_and_unknown_is_a_word() -> None:
    assert figures.hours(978_078_473 * 3_600) == "978,078.5"
    assert figures.hours(0) == "0.0"
    assert figures.hours(None) == "unknown"


def test_percent_rounds_half_to_even_and_unknown_is_a_word() -> None:
    assert [figures.percent(Decimal(v)) for v in ("0.98765", "1.0610", "0.0005", "0.0015")] == [
        "98.8 %",
        "106.1 %",
        "0.0 %",
        "0.2 %",
    ]
    assert figures.percent(None) == "unknown"
    assert (figures.share(1, 0), figures.share(None, 1), figures.share(1, 4)) == (
        "unknown",
        "unknown",
        "25.0 %",
    )


def test_instants_name_their_zone() -> None:
    assert figures.instant("2026-03-11T07:30:00+01:00") == "2026-03-11 06:30 UTC"
    assert figures.instant(None) == "unknown"


def test_a_footnote_says_window_as_of_coverage_rung_and_unit() -> None:
    note = figures.footnote(
        window="2026-03-01", timezone="UTC", as_of="2026-03-11T06:00:00Z", coverage="9 %", rung="sm_active"
    ).replace("\\", "")
    for word in (
        "Window 2026-03-01",
        "days of UTC",
        "as of 2026-03-11 06:00 UTC",
        "coverage 9 %",
        "SM_ACTIVE",
        "GPU-h",
    ):
        assert word in note


def test_text_is_not_markdown() -> None:
    assert figures.plain("a_b*c `d` ~e~ $f$ :g:") == r"a\_b\*c \`d\` \~e\~ \$f\$ \:g\:"


def test_csv_has_both_units_context_and_no_formula() -> None:
    rows = [
        {"account": "=cmd()", "owed_gpu_ms": 5_400_000, "delivered_gpu_ms": None, "ratio": Decimal("0.5")}
    ]
    text = figures.csv_of(rows, {"as_of": "2026-03-11T06:00:00Z"}).decode()
    (row,) = csv.DictReader(io.StringIO(text))
    assert row == {
        "account": "'=cmd()",
        "owed_gpu_ms": "5400000",
        "owed_gpu_hours": "1.500",
        "delivered_gpu_ms": "",
        "delivered_gpu_hours": "",
        "ratio": "0.5",
        "as_of": "2026-03-11T06:00:00Z",
    }


def test_days_include_both_ends() -> None:
    import datetime as dt

    day = dt.date(2026, 3, 1)
    assert figures.days(day, day) == "2026-03-01"
    assert figures.days(day, day + dt.timedelta(days=1)) == "2026-03-01 to 2026-03-02"
