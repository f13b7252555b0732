"""One view of the cluster, said to each with its own place and figures."""

from tests.unit.policy.forests import forest, pending

from gpuledger.policy.explain import Ahead, Kept
from gpuledger.policy.fair_share import Turn, order_workloads
from gpuledger.policy.outlook import Outlook, figures
from gpuledger.policy.state import PolicyConfig

TREE = forest({"a": {"used": 17_600}, "b": {}})
QUEUE = [pending("head", "b", gpus=8), pending("w", "a", gpus=4), pending("free", "a", gpus=4, hours=0)]
HEAD, WAITING, FREE = order_workloads(TREE, QUEUE, PolicyConfig())


def test_the_figures_are_those_of_the_turn() -> None:
    assert figures(WAITING, 1500) == {
        "position": 2, "gpus_milli": 4000, "free_milli": 1500, "missing_milli": 2500, "ratio_ppm": 2_000_000,
    }  # fmt: skip
    assert "ratio_ppm" not in figures(FREE, 0)


def told(outlook: Outlook, turn: Turn) -> tuple[str, dict[str, int]]:
    return outlook.told(outlook.own(turn))


def test_funded_work_waits_behind_its_head() -> None:
    outlook = Outlook(4000, 1500, None, Ahead.of(HEAD, 6500))
    assert outlook.is_funded
    reason, numbers = told(outlook, WAITING)
    assert numbers == figures(WAITING, 1500) | {"head_missing_milli": 6500}
    assert reason == (
        "Waits at place 2: head of account b is ahead, for which 6.500 GPUs are missing; b (ratio 0.000000, "
        "running below its floor) comes before a (ratio 2.000000, running below its floor)."
    )


def test_what_would_fit_but_for_a_reservation_is_told_of_it() -> None:
    outlook = Outlook(4000, 5000, Kept("head", 60), Ahead.of(HEAD, 3000))
    reason, numbers = told(outlook, WAITING)
    assert numbers == figures(WAITING, 5000) | {"reserved_at_s": 60}
    assert reason.startswith("Waits at place 2: its 4 GPUs would fit, but are reserved for head")


def test_unallocated_work_waits_for_what_is_free() -> None:
    outlook = Outlook(4000, 1500)
    assert not outlook.is_funded
    reason, numbers = told(outlook, FREE)
    assert numbers == figures(FREE, 1500)
    assert reason.startswith("Waits at place 3 for free GPUs, as unallocated work of account a:")
