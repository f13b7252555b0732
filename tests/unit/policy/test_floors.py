"""What floors keep: runs that stand within the present entitlement of their account."""

from tests.unit.policy.forests import forest

from gpuledger.policy.floors import Floors, Taken
from gpuledger.policy.ranking import Ranking
from gpuledger.policy.state import PolicyConfig


def floors(**running: int) -> Floors:
    """Of 24 GPUs p is entitled to 16 and its projects x and y to 8 each; their floors are half of that."""
    tree = forest(
        {"a": {}, "p": {"share": 2}, "p/x": {}, "p/y": {}},
        gpus=24,
        running={f"p/{project}": gpus for project, gpus in running.items()},
    )
    return Floors(Ranking(tree, PolicyConfig()))


def test_an_account_is_not_pushed_below_its_floor() -> None:
    beside: Taken = {}
    kept = floors(x=6, y=10)
    assert kept.let_go(["p", "p/x"], 2000, beside)
    assert beside == {"p": 2000, "p/x": 2000}
    kept.count("p/x", -2000)
    assert not kept.let_go(["p", "p/x"], 1000, beside)
    assert beside == {"p": 2000, "p/x": 2000}


def test_a_run_that_puts_it_beyond_its_entitlement_may_go() -> None:
    assert floors(x=9, y=8).let_go(["p", "p/x"], 9000, {})
    assert not floors(x=8, y=8).let_go(["p", "p/x"], 8000, {})


def test_any_one_of_several_would_put_it_beyond() -> None:
    """Of a run of 9 and one of 1 the large one may go, or the small one, but not both: within 8 the small one stays."""
    for first, second in ((9000, 1000), (1000, 9000)):
        kept, beside = floors(x=10, y=14), Taken()
        assert kept.let_go(["p", "p/x"], first, beside)
        kept.count("p/x", -first)
        assert not kept.let_go(["p", "p/x"], second, beside)


def test_what_went_for_others_is_gone() -> None:
    kept = floors(x=10, y=14)
    kept.count("p/x", -1000)
    assert kept.let_go(["p", "p/x"], 9000, {})


def test_only_those_who_lose_by_it_are_asked() -> None:
    """What goes to a sibling of its project takes nothing from the department, which is at its floor."""
    kept = floors(x=6, y=2)
    assert kept.let_go(["p/x"], 2000, {})
    assert not kept.let_go(["p", "p/x"], 2000, {})


def test_who_loses_is_the_account_beside_the_asker_and_those_below_it() -> None:
    kept = floors(x=6, y=10)
    assert kept.losers("p/x", "p") == ("p", "p/x")
    assert kept.losers("p/x", "p/x") == ("p/x",)
    assert kept.losers("p/x", "p") == ("p", "p/x")  # asked again
