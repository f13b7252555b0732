"""What came and went since that was last asked."""

from gpuledger.simulator.books_traffic import Traffic


def test_what_came_and_went_is_told_once() -> None:
    traffic = Traffic[int]()
    traffic.come("a", 1)
    traffic.come("b", 2)
    assert traffic.told() == ((), (1, 2))
    traffic.go("a", 1)
    assert traffic.told() == ((1,), ())
    assert traffic.told() == ((), ())


def test_what_came_and_went_in_between_is_told_to_nobody() -> None:
    traffic = Traffic[int]()
    traffic.come("a", 1)
    traffic.go("a", 1)
    assert traffic.told() == ((), ())


def test_another_value_of_a_name_takes_the_place_of_the_one_that_was_told() -> None:
    traffic = Traffic[int]()
    traffic.come("a", 1)
    traffic.told()
    for value in (1, 2):
        traffic.go("a", value)
        traffic.come("a", value + 1)
    assert traffic.told() == ((1,), (3,))
