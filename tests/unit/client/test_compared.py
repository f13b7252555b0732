"""A comparison of two budgets, as a proposal carries it."""

import json

import pytest

from gpuledger.client import compared
from gpuledger.kernel.errors import Refused


def test_a_comparison_is_carried_as_a_proposal_carries_it() -> None:
    pair = {"a": 10.5, "b": None, "change": None}
    row = {"account": "org/vision", "gpu_hours": pair, "wait_p90_s": {"a": 60.4, "b": 30, "change": -30.4}}
    document = {
        "scenario": "my/institute.yaml",
        "seed": 7,
        "days": 30,
        "accounts": [row],
        "world": "gpuledger",
    }
    found = compared.read(json.dumps(document).encode())
    assert found == {
        "scenario": "institute", "seed": 7, "days": 30,
        "accounts": [{
            "account": "org/vision", "before_gpu_ms": 37_800_000, "after_gpu_ms": 0, "before_wait_p90_s": 60,
            "after_wait_p90_s": 30,
        }],
    }  # fmt: skip
    for wrong in (b"", b"[]", b"{}", b"\xff"):
        with pytest.raises(Refused, match="comparison of two budgets"):
            compared.read(wrong)
