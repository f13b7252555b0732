import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.slurm.node_states import health, reason_code


@pytest.mark.parametrize(
    ("words", "state", "word"),
    [
        (["idle"], "healthy", "idle"),
        (["MIXED+PLANNED"], "healthy", "idle"),
        (["ALLOCATED", "COMPLETING"], "healthy", "idle"),
        (["mix-"], "healthy", "idle"),
        (["idle~"], "healthy", "idle"),
        (["IDLE+DRAIN"], "draining", "drain"),
        (["idle", "DRAIN"], "draining", "drain"),
        (["drng"], "draining", "drain"),
        (["drained"], "draining", "drain"),
        (["IDLE", "DRAIN", "NOT_RESPONDING"], "unhealthy", "not-responding"),
        (["drain*"], "unhealthy", "not-responding"),
        (["DOWN+NOT_RESPONDING"], "unhealthy", "down"),
        (["down*"], "unhealthy", "down"),
        (["DOWN", "DYNAMIC_NORM"], "unhealthy", "down"),
        (["DOWN+DRAIN+INVALID_REG"], "unhealthy", "down"),
        (["inval"], "unhealthy", "invalid-reg"),
        (["IDLE+FAIL"], "unhealthy", "fail"),
        (["failg"], "unhealthy", "fail"),
        (["ERROR"], "unhealthy", "error"),
        (["drained$"], "maintenance", "maint"),
        (["DOWN+MAINTENANCE"], "maintenance", "maint"),
        (["IDLE", "MAINTENANCE"], "maintenance", "maint"),
        (["reboot^"], "maintenance", "reboot-issued"),
        (["mix@"], "healthy", "idle"),
        (["UNKNOWN"], None, "unknown"),
        (["IDLE+RESERVED"], "reserved", "reserved"),
        (["MIXED", "RESERVED", "PLANNED"], "reserved", "reserved"),
        (["resv"], "reserved", "reserved"),
        (["IDLE+RESERVED+DRAIN"], "draining", "drain"),
        (["MAINT+RESERVED"], "maintenance", "maint"),
        (["UNKNOWN+RESERVED"], None, "unknown"),
        (["FUTURE"], None, "future"),
        (["drain*", "drained*"], "unhealthy", "not-responding"),
    ],
)
def test_the_word_that_matters_most_decides(words: list[str], state: str | None, word: str) -> None:
    assert health("State", words) == (state, word)


@pytest.mark.parametrize("words", [["on-fire"], ["IDLE+ON_FIRE"], ["idle", "LOST"], ["i d l e"]])
def test_a_word_that_is_not_known_is_never_health(words: list[str]) -> None:
    with pytest.raises(BadRecord, match="is not a state of a node") as caught:
        health("State", words)
    assert caught.value.code == "unknown-state"


@pytest.mark.parametrize("words", [[], [""], ["+"]])
def test_no_state_is_a_fault(words: list[str]) -> None:
    with pytest.raises(BadRecord, match="State: is missing"):
        health("State", words)


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("Not responding", "down/not-responding"),
        (
            "gres/gpu count reported lower than configured (0 < 8)",
            "down/gres-gpu-count-reported-lower-than-configured-0-8",
        ),
        ("", "down"),
        ("none", "down"),
        ("---", "down"),
        ("x" * 200, "down/" + "x" * 60),
        ("reboot", "down/reboot"),
    ],
)
def test_a_reason_is_a_short_code_behind_the_word(reason: str, code: str) -> None:
    assert reason_code("down", reason) == code
