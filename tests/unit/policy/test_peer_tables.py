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
    assert divide(total, queues) == ours != theirs
