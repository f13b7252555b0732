"""The back-test that chose the model of the forecast; docs/forecast.md shows what it prints."""

import re
from pathlib import Path

import pytest
from tests.bench.forecasters import FORECASTERS, Case, Score, cases, score

pytestmark = pytest.mark.bench

EVERY_DAYS = {"short": 6, "full": 2}
"""Days between two moments at which an end is foretold."""


@pytest.fixture(scope="module")
def scores(test_form: str) -> dict[tuple[str, str], Score]:
    by_trace: dict[str, list[Case]] = {}
    for case in cases(EVERY_DAYS[test_form]):
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


def test_the_page_shows_what_came_of_it(
    scores: dict[tuple[str, str], Score], test_form: str, repository: Path
) -> None:
    """The page has the figures of the full form; the short one looks at fewer moments, so only roughly the same."""
    page = (repository / "docs/forecast.md").read_text()
    near = 0.02 if test_form == "full" else 0.15
    for (trace, name), its in scores.items():
        shown_row = rf"^\| {trace} \(\d+\) \| {name} \| ([\d.]+) % \| (.\d+\.\d) % \| (\d+) % \|"
        row = re.search(shown_row, page, re.MULTILINE)
        assert row is not None, (trace, name)
        shown = [float(value) / 100 for value in row.groups()]
        assert shown == pytest.approx([its.error, its.bias, its.coverage], abs=near), (trace, name)
