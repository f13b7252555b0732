"""Divisions that other schedulers' own tests and documents state, and where we differ from them on purpose.

The reasons for the differences stand in docs/fairness.md.
"""

import pytest
from tests.unit.policy.forests import forest

from gpuledger.policy.issue import issue_without_history

Queues = list[tuple[int, float]]


def divide(total: int, queues: Queues) -> tuple[list[float], float]:
    accounts = {f"q{n}": {"share": weight, "demand": request} for n, (weight, request) in enumerate(queues)}
    outcome = issue_without_history(forest(accounts, gpus=total), supply_milli=total * 1000)
    return [outcome.issued_milli[path] / 1000 for path in accounts], outcome.idle_milli / 1000


@pytest.mark.parametrize(
    ("total", "queues", "expected", "left"),
    [
        pytest.param(15, [(2, 6), (2, 6)], [6, 6], 3, id="T7"),
        pytest.param(12, [(2, 5), (2, 6)], [5, 6], 1, id="T9, a limit of 5 is a demand of 5"),
        pytest.param(11, [(2, 6), (2, 6)], [6, 5], 0, id="T11, the older queue is the earlier path"),
        pytest.param(9999, [(6, 10_000), (2, 10_000), (1, 10_000)], [6666, 2222, 1111], 0, id="T16"),
        pytest.param(1000, [(1, 5000), (2, 400)], [600, 400], 0, id="T18"),
        pytest.param(45, [(12, 32.55), (7, 9.5), (2, 1.65)], [32.55, 9.5, 1.65], 1.3, id="T19"),
        pytest.param(5, [(2, 3), (2, 3)], [3, 2], 0, id="T20"),
    ],
)
def test_kai_resource_division_table(total: int, queues: Queues, expected: list[float], left: float) -> None:
    assert divide(total, queues) == (expected, left)


@pytest.mark.parametrize(
    ("total", "queues", "ours", "theirs"),
    [
        pytest.param(
            1, [(0, 2)], [0], [2], id="T3: share 0 is issued nothing, and 1 GPU is never issued twice"
        ),
        pytest.param(4, [(0, 5)], [0], [3], id="T4: no deserved tier"),
        pytest.param(8, [(1, 6), (3, 6)], [2, 6], [3, 5], id="T8: no deserved tier"),
        pytest.param(11, [(1, 10), (4, 10)], [2, 9], [3, 8], id="T10: no deserved tier"),
        pytest.param(6, [(2, 6), (2, 6)], [3, 3], [2, 4], id="T13: no priority between accounts"),
        pytest.param(6, [(100, 6), (1, 6)], [6, 0], [2, 4], id="T14: share beats priority"),
        pytest.param(1000, [(1, 5000), (2, 5000)], [333, 667], [450, 550], id="T17: no deserved tier"),
        pytest.param(100, [(3, 100), (1, 100)], [75, 25], [70, 30], id="T21: no deserved tier"),
    ],
)
def test_where_kai_differs_on_purpose(
    total: int, queues: Queues, ours: list[float], theirs: list[float]
) -> None:
    assert divide(total, queues)[0] == ours != theirs


def test_kueue_hierarchical_weights_q13() -> None:
    """Kueue fair_sharing tests: root 12, best-effort 0.5 beside research 1, which has three teams."""
    tree = forest(
        {
            "best-effort": {"share": 1, "demand": 99},
            "research": {"share": 2},
            "research/chemistry": {"share": 1, "demand": 99},
            "research/physics": {"share": 1, "demand": 99},
            "research/llm": {"share": 2, "demand": 99},
        },
        gpus=12,
    )
    assert issue_without_history(tree, supply_milli=12_000).issued_milli == {
        "best-effort": 4000,
        "research": 8000,
        "research/chemistry": 2000,
        "research/physics": 2000,
        "research/llm": 4000,
    }


def test_kueue_proposal_1714_story_q15() -> None:
    """A shared pool of 300 for two cohorts: three queues weighing 1, 1, 3 beside a single one."""
    tree = forest(
        {
            "c1/a": {"share": 1, "demand": 300},
            "c1/b": {"share": 1, "demand": 300},
            "c1/c": {"share": 3, "demand": 300},
            "c2/a": {"share": 1, "demand": 300},
        },
        gpus=300,
    )
    issued = issue_without_history(tree, supply_milli=300_000).issued_milli
    assert [issued[path] // 1000 for path in ("c1", "c1/a", "c1/b", "c1/c", "c2")] == [150, 30, 30, 90, 150]


@pytest.mark.parametrize(
    ("queues", "namespaces", "requests", "expected"),
    [
        pytest.param((1, 1), (1, 1, 1, 1), (5, 10, 10, 2), (4, 4, 6, 2), id="queues-1-1"),
        pytest.param((1, 3), (3, 1, 2, 6), (5, 10, 10, 2), (3, 1, 10, 2), id="queues-1-3"),
        pytest.param((1, 3), (3, 1, 2, 6), (5, 10, 5, 20), (3, 1, 3, 9), id="second-queue-asks-5-20"),
    ],
)
def test_volcano_namespace_table(
    queues: tuple[int, int],
    namespaces: tuple[int, int, int, int],
    requests: tuple[int, int, int, int],
    expected: tuple[int, int, int, int],
) -> None:
    """Volcano's namespace fair share: 16 CPU, two queues of two namespaces."""
    leaves = ("q1/ns1", "q1/ns2", "q2/ns1", "q2/ns2")
    accounts: dict[str, dict[str, float]] = {"q1": {"share": queues[0]}, "q2": {"share": queues[1]}}
    for path, weight, request in zip(leaves, namespaces, requests, strict=True):
        accounts[path] = {"share": weight, "demand": request}
    issued = issue_without_history(forest(accounts, gpus=16), supply_milli=16_000).issued_milli
    assert tuple(issued[path] // 1000 for path in leaves) == expected
