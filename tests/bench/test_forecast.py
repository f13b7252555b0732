"""The back-test that chose the model of the forecast; docs/forecast.md shows what it prints."""

import re
from pathlib import Path

import pytest
from tests.bench.forecasters import FORECASTERS, Case, Score, cases, score

pytestmark = pytest.mark.bench

EVERY_DAYS = 2
"""Days between two moments at which an end is foretold; the same in every form, for fewer moments are another test."""

NEAR = 0.02
"""How close to the page's figures the found ones are: other processors find other last digits."""


@pytest.fixture(scope="module")
def scores() -> dict[tuple[str, str], Score]:
    by_trace: dict[str, list[Case]] = {}
    for case in cases(EVERY_DAYS):
        by_trace.setdefault(case.trace, []).append(case)
    found = {
        (trace, name): score(forecaster, on)
        for trace, on in by_trace.items()
        for name, forecaster in FORECASTERS.items()
    }
    print()
    for trace, on in by_trace.items():
        for name in FORECASTERS:
            its = found[trace, name]
            print(
                f"| {trace} ({len(on)}) | {name} | {100 * its.error:.1f} %"
                f" | {100 * its.bias:+.1f} % | {100 * its.coverage:.0f} %"
                f" | {its.penalty:.2f} |"
            )
    return found


@pytest.mark.parametrize("trace", ["Philly", "Helios"])
@pytest.mark.parametrize("other", ["naive", "seasonal naive"])
def test_it_is_less_wrong_than_yesterday_and_than_last_week(
    scores: dict[tuple[str, str], Score], trace: str, other: str
) -> None:
    ours, theirs = scores[trace, "ours"], scores[trace, other]
    assert ours.error < theirs.error
    assert ours.penalty < theirs.penalty


@pytest.mark.parametrize("trace", ["Philly", "Helios"])
def test_the_band_holds_about_as_often_as_it_says(scores: dict[tuple[str, str], Score], trace: str) -> None:
    assert 0.60 < scores[trace, "ours"].coverage < 0.95


def test_the_page_shows_what_came_of_it(scores: dict[tuple[str, str], Score], repository: Path) -> None:
    page = (repository / "docs/forecast.md").read_text()
    for (trace, name), its in scores.items():
        shown_row = rf"^\| {trace} \(\d+\) \| {name} \| ([\d.]+) % \| (.\d+\.\d) % \| (\d+) % \|"
        row = re.search(shown_row, page, re.MULTILINE)
        assert row is not None, (trace, name)
        shown = [float(value) / 100 for value in row.groups()]
        assert shown == pytest.approx([its.error, its.bias, its.coverage], abs=NEAR), (trace, name)
