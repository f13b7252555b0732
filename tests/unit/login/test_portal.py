"""The file of balances that Open OnDemand reads."""

import datetime as dt

from gpuledger.login import portal

HOUR = 3_600_000


def test_each_person_has_a_row_for_each_account_with_hours_left() -> None:
    rows = {"org/a": [{"available_gpu_ms": 5 * HOUR // 2}], "org/b": [{"available_gpu_ms": -HOUR}]}
    found = portal.document(
        rows,
        {"tomas": ["org/b", "org/a"], "ines": ["org/a", "org/gone"]},
        dt.datetime(2026, 12, 8, tzinfo=dt.UTC),
    )
    assert found == {
        "version": 1,
        "timestamp": 1_796_688_000,
        "config": {"unit": "GPU-hours", "project_type": "account"},
        "balances": [
            {"user": "ines", "project": "org/a", "value": 2.5},
            {"user": "tomas", "project": "org/a", "value": 2.5},
            {"user": "tomas", "project": "org/b", "value": -1.0},
        ],
    }
