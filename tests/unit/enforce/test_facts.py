"""What a cycle means at the moment of acting."""

from tests.unit.enforce.told import TREE, allocation, facts, record


def test_an_account_weighs_what_it_is_issued() -> None:
    issued = facts(record(allocations=TREE)).issued()

    assert {path: one.weight for path, one in issued.items()} == {
        "org": 16_000, "org/a": 6000, "org/b": 10_500, "org/c": 0,
    }  # fmt: skip
    assert issued["org/b"].why == "10.500 GPUs are issued to org/b"
    assert issued["org/c"].why == "its share is 0"


def test_an_account_that_asks_for_nothing_weighs_what_it_is_entitled_to_down_the_tree() -> None:
    quiet = (
        allocation("org", 1_000_000, 16, 16),
        allocation("org/a", 250_000, 0, 0),
        allocation("org/a/deep", 500_000, 0, 0),
        allocation("org/b", 750_000, 16, 16),
    )
    issued = facts(record(allocations=quiet)).issued()

    assert issued["org/a"].weight == 4000
    assert issued["org/a/deep"].weight == 2000
    assert issued["org/a"].why == "org/a asks for nothing and is entitled to 4 GPUs"


def test_an_account_with_a_share_weighs_something_even_when_nothing_is_issued() -> None:
    tiny = (allocation("org", 1_000_000, 16, 16), allocation("org/a", 1, 0, 8))
    assert facts(record(allocations=tiny)).issued()["org/a"].weight == 1
