"""Where we differ on purpose from the divisions that other schedulers' tests state.

The reasons stand in docs/fairness.md; what we agree with, in tests/conformance/test_fairshare.py.
"""

import pytest
from tests.unit.policy.forests import forest

from gpuledger.policy.issue import issue_without_history

Queues = list[tuple[int, float]]


def divide(total: int, queues: Queues) -> list[float]:
    accounts = {f"q{n}": {"share": weight, "demand": request} for n, (weight, request) in enumerate(queues)}
    outcome = issue_without_history(forest(accounts, gpus=total), supply_milli=total * 1000)
    return [outcome.issued_milli[path] / 1000 for path in accounts]


@pytest.mark.parametrize(
    ("total", "queues", "ours", "theirs"),
    [
        pytest.param(2, [(0, 2)], [0], [2], id="T1: share 0 is issued nothing"),
        pytest.param(3, [(0, 2)], [0], [2], id="T2: share 0 is issued nothing"),
        pytest.param(
            1, [(0, 2)], [0], [2], id="T3: share 0 is issued nothing, and 1 GPU is never issued twice"
        ),
        pytest.param(7, [(0, 5)], [0], [3], id="T4: no deserved tier"),
        pytest.param(2, [(0, 2)], [0], [1.5], id="T5: no deserved tier"),
        pytest.param(2, [(0, 1.5)], [0], [1.5], id="T6: share 0 is issued nothing"),
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
    assert divide(total, queues) == ours != theirs


@pytest.mark.parametrize(
    ("total", "queues", "both"),
    [
        pytest.param(4, [(2, 6), (2, 6)], [2, 2], id="T12: priority ignores what is deserved"),
        pytest.param(5, [(2, 5), (2, 5), (2, 0)], [3, 2, 0], id="T15: the odd GPU goes to the first"),
        pytest.param(
            5, [(1, 1), (2, 3), (1, 2)], [1, 3, 1], id="T22: rounded down, then the largest remainder"
        ),
    ],
)
def test_where_kai_comes_to_the_same_numbers_by_other_rules(
    total: int, queues: Queues, both: list[float]
) -> None:
    assert divide(total, queues) == both
