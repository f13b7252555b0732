"""Delivered / owed in three readings, as DESIGN section 5 has it."""

from array import array
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.simulator.stories import GPU_HOUR, HOUR_S

from gpuledger.simulator.owing import TRAILING_HOURS, Hours, Owing, add_up, worst_trailing
from gpuledger.warehouse.readings import ratio


def test_the_worked_example() -> None:
    """E = 350 each hour; D = 500, 120, 0, 600; L = 300, 120, 0, 450: raw 106.1 %, window 100 %, hourly 93.9 %."""
    demand, delivered = (500, 120, 0, 600), (300, 120, 0, 450)
    owing = Owing({"org": Fraction(1)}, 0)
    for hour, (asked, given_) in enumerate(zip(demand, delivered, strict=True)):
        at_s = hour * HOUR_S
        owing.run(at_s, "org", given_ * 1000, 0)
        owing.wait(at_s, "org", (asked - given_) * 1000, 0)
        owing.end_hour(at_s + HOUR_S, 350 * GPU_HOUR)
        owing.run(at_s + HOUR_S, "org", -given_ * 1000, 0)
        owing.wait(at_s + HOUR_S, "org", (given_ - asked) * 1000, 0)
    hours = owing.hours()["org"]
    owed = [min(e, d) // GPU_HOUR for e, d, _ in hours.rows()]
    assert owed == [350, 120, 0, 350]
    sums = add_up(hours.rows())
    readings = [ratio(n, sums.owed) for n in (sums.delivered, sums.in_window, sums.met)]
    assert [f"{value:.1%}" for value in readings if value is not None] == ["106.1%", "100.0%", "93.9%"]
    assert sums.unmet == (150 + 250) * GPU_HOUR


def test_work_that_can_never_be_placed_is_told_apart() -> None:
    """10 GPUs for two hours: a gang that needs 24 GPU-hours never fits, one that needs 20 does at the very end."""
    owing = Owing({"org": Fraction(1)}, 0)
    owing.wait(0, "org", 4000, 24 * GPU_HOUR)
    owing.run(0, "org", 3000, 20 * GPU_HOUR)
    owing.wait(0, "org", 1000, GPU_HOUR)
    for hour in (1, 2):
        owing.end_hour(hour * HOUR_S, 10 * GPU_HOUR)
    hours = owing.hours()["org"]
    assert [(e, d, given_) for e, d, given_ in hours.rows()] == [
        (10 * GPU_HOUR, 8 * GPU_HOUR, 3 * GPU_HOUR)
    ] * 2
    assert [d // GPU_HOUR for _, d, _ in hours.rows(placeable=True)] == [4, 4]
    assert add_up(hours.rows()).owed - add_up(hours.rows(placeable=True)).owed == 8 * GPU_HOUR


def test_what_it_did_get_does_not_count_for_the_rest() -> None:
    owing = Owing({"org": Fraction(1)}, 0)
    owing.run(0, "org", 4000, 24 * GPU_HOUR)
    owing.wait(0, "org", 2000, GPU_HOUR)
    owing.end_hour(HOUR_S, 10 * GPU_HOUR)
    (row,) = owing.hours()["org"].rows(placeable=True)
    assert row == (10 * GPU_HOUR, 2 * GPU_HOUR, 0)


def test_an_account_without_a_part_is_owed_nothing() -> None:
    owing = Owing({"org": Fraction(1)}, 0)
    owing.end_hour(HOUR_S, GPU_HOUR)
    owing.run(HOUR_S, "stranger", 1000, 0)
    owing.end_hour(2 * HOUR_S, GPU_HOUR)
    assert list(owing.hours()["stranger"].rows()) == [(0, 0, 0), (0, GPU_HOUR, GPU_HOUR)]


def _hours(rows: list[tuple[int, int, int]]) -> Hours:
    e, d, given_ = (array("q", column) for column in zip(*rows, strict=True))
    return Hours(entitled=e, demand=d, delivered=given_)


SMALL = st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))


@given(
    st.integers(1, TRAILING_HOURS + 30).flatmap(
        lambda hours: st.lists(
            st.lists(SMALL, min_size=1, max_size=9).map(lambda some: (some * hours)[:hours]),
            min_size=1,
            max_size=3,
        )
    )
)
def test_the_worst_seven_days_are_those_of_every_stretch(accounts: list[list[tuple[int, int, int]]]) -> None:
    found = worst_trailing({str(n): _hours(rows) for n, rows in enumerate(accounts)})
    length = min(TRAILING_HOURS, len(accounts[0]))
    together, alone = [], {}
    for start in range(len(accounts[0]) - length + 1):
        sums = [add_up(rows[start : start + length]) for rows in accounts]
        if owed := sum(s.owed for s in sums):
            together.append(Fraction(sum(s.in_window for s in sums), owed))
        for n, s in enumerate(sums):
            if s.owed:
                alone.setdefault(str(n), []).append(Fraction(s.in_window, s.owed))
    assert (found.cluster and Fraction(*found.cluster)) == (min(together) if together else None)
    assert {path: Fraction(*pair) for path, pair in found.accounts.items()} == {
        p: min(f) for p, f in alone.items()
    }
