"""What a decision sets aside is GPUs times whole seconds, and nothing for an unallocated run."""

import msgspec
import pytest

from gpuledger.events.decision import DecisionMade

LEAST = {
    "cluster": "alpha",
    "workload": "w1",
    "attempt": 1,
    "class": "allocated",
    "account": "org/vision",
    "gpus_milli": 8000,
    "hold_gpu_ms": 28_800_000,
    "reason": "funded",
}
MOST = LEAST | {
    "gpu_model": "h100",
    "expires_at": "2026-12-01T12:15:00Z",
    "extends_from": "2026-12-01T13:00:00Z",
    "org_seq": 7,
}


def read(**keys: object) -> DecisionMade:
    return msgspec.json.decode(msgspec.json.encode(LEAST | keys), type=DecisionMade)


@pytest.mark.parametrize("body", [LEAST, MOST])
def test_a_decision_comes_back_as_it_was_written(body: dict[str, object]) -> None:
    assert msgspec.json.decode(msgspec.json.encode(read(**body))) == body


@pytest.mark.parametrize(
    ("gpus_milli", "hold_gpu_ms", "seconds"),
    [(8000, 28_800_000, 3600), (8000, 8000, 1), (142, 142 * 1800, 1800), (8000, 0, 0), (0, 0, 0)],
)
def test_it_says_for_how_long_the_gpus_are_set_aside(gpus_milli: int, hold_gpu_ms: int, seconds: int) -> None:
    assert read(gpus_milli=gpus_milli, hold_gpu_ms=hold_gpu_ms).hold_s == seconds


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"hold_gpu_ms": 28_800_001}, "hold_gpu_ms is not gpus_milli times whole seconds"),
        ({"hold_gpu_ms": 7999}, "hold_gpu_ms is not gpus_milli times whole seconds"),
        ({"gpus_milli": 0}, "hold_gpu_ms is not gpus_milli times whole seconds"),
        ({"class": "unallocated"}, "nothing is set aside for an unallocated run"),
        ({"hold_gpu_ms": -8000}, "hold_gpu_ms"),
        ({"class": "funded"}, "class"),
        ({"attempt": -1}, "attempt"),
        ({"account": ""}, "account"),
        ({"expires_at": "2026-12-01T12:15:00"}, "expires_at"),
    ],
)
def test_what_cannot_be_is_refused(keys: dict[str, object], expected: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=expected):
        read(**keys)


def test_an_unallocated_attempt_holds_nothing() -> None:
    assert read(**{"class": "unallocated", "hold_gpu_ms": 0}).hold_s == 0
