import pytest

from gpuledger.simulator.waits import Waits, size_of


@pytest.mark.parametrize(
    ("milli", "size"),
    [(142, "<1"), (1000, "1"), (1500, "2"), (2000, "2"), (3000, "3-4"), (4000, "3-4"), (8000, "5-8"), (9000, "9-16"),
     (64_000, "33-64"), (65_000, "65-128"), (1_024_000, "513-1024")],
)  # fmt: skip
def test_sizes_double(milli: int, size: str) -> None:
    assert size_of(milli) == size


def test_a_wait_counts_in_its_group_its_size_its_account_and_among_all() -> None:
    waits = Waits()
    waits.first("debug", "1", "org/a", 30, started=True, entered_s=0)
    waits.first("largest", "65-128", "org/b", 7200, started=True, entered_s=0)
    waits.first("largest", "65-128", "org/b", 90_000, started=False, entered_s=600)
    groups = waits.by_group()
    assert list(groups) == ["debug", "interactive", "medium", "large", "largest", "all"]
    assert groups["all"].quantiles(300, 600) == [30, 7200]
    assert groups["largest"].quantile(900) is None
    assert groups["medium"].count == 0
    assert list(waits.by_size()) == ["1", "65-128"]
    assert waits.accounts["org/b"].unended == {90_000: 1}
    assert groups["all"].late == {(600, 90_000, False): 1}
