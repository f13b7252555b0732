import datetime as dt

from gpuledger.kernel.calendar import Calendar
from gpuledger_pipelines.defs.budget.assets import periods_touched
from gpuledger_pipelines.partitions import Span


def at_s(*parts: int) -> int:
    return int(dt.datetime(*parts, tzinfo=dt.UTC).timestamp())


def test_whole_periods_are_restated_however_little_of_them_is_touched() -> None:
    found = periods_touched(Calendar("UTC"), Span("c", at_s(2024, 1, 31), at_s(2024, 2, 2), 0))
    assert found == {
        "periods": ["2024-01", "2024-02"],
        "starts": [at_s(2024, 1, 1), at_s(2024, 2, 1)],
        "ends": [at_s(2024, 2, 1), at_s(2024, 3, 1)],
    }


def test_periods_are_cut_in_the_organisations_zone() -> None:
    found = periods_touched(Calendar("Asia/Kolkata"), Span("c", at_s(2024, 1, 31), at_s(2024, 2, 1), 0))
    assert found["periods"] == ["2024-01", "2024-02"]
    assert found["ends"][0] == at_s(2024, 1, 31, 18, 30)
