"""States: a base with flags in any spelling; what is not known is refused."""

import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.slurm.states import BASES, Kind, state_of


@pytest.mark.parametrize(
    ("words", "kind", "name"),
    [
        ("COMPLETED", Kind.ENDED, "COMPLETED"),
        ("CANCELLED by 1001", Kind.ENDED, "CANCELLED"),
        (["CANCELLED"], Kind.ENDED, "CANCELLED"),
        ("NODE_FAIL", Kind.ENDED, "NODE_FAIL"),
        ("PREEMPTED", Kind.PREEMPTED, "PREEMPTED"),
        ("RUNNING", Kind.RUNNING, "RUNNING"),
        (["RUNNING", "CONFIGURING"], Kind.RUNNING, "RUNNING"),
        (["COMPLETED", "COMPLETING"], Kind.ENDED, "COMPLETED"),
        ("SUSPENDED", Kind.SUSPENDED, "SUSPENDED"),
        ("REQUEUED", Kind.REQUEUED, "REQUEUED"),
        (["PENDING", "REQUEUED"], Kind.REQUEUED, "REQUEUED"),
        ("RESIZING", Kind.RESIZED, "RESIZING"),
        (["RUNNING", "RESIZING"], Kind.RUNNING, "RUNNING"),
        (["PENDING", "REVOKED"], Kind.REVOKED, "REVOKED"),
        ("REVOKED", Kind.REVOKED, "REVOKED"),
        (["PENDING", "REQUEUE_HOLD"], Kind.PENDING, "PENDING"),
        ("COMPLETING", Kind.ENDED, "COMPLETING"),
        ("CONFIGURING", Kind.RUNNING, "CONFIGURING"),
        ("pending", Kind.PENDING, "PENDING"),
    ],
)
def test_what_a_state_means(words: str | list[str], kind: Kind, name: str) -> None:
    state = state_of("State", words)
    assert (state.kind, state.name) == (kind, name)


def test_flags_are_kept() -> None:
    assert state_of("s", ["RUNNING", "CONFIGURING", "POWER_UP_NODE"]).flags == {
        "CONFIGURING",
        "POWER_UP_NODE",
    }


@pytest.mark.parametrize(
    "words",
    ["HIBERNATING", ["RUNNING", "FROZEN"], ["RUNNING", "COMPLETED"], "LAUNCH_FAILED", "CANCELLED+"[:-2]],
)
def test_what_is_not_known_is_refused(words: str | list[str]) -> None:
    with pytest.raises(BadRecord) as refused:
        state_of("State", words)
    assert refused.value.code == "unknown-state"
    assert "State" in refused.value.message


@pytest.mark.parametrize("words", ["", [], " "])
def test_no_state_is_missing(words: str | list[str]) -> None:
    with pytest.raises(BadRecord) as refused:
        state_of("State", words)
    assert refused.value.code == "missing-value"


def test_a_run_is_over_in_all_states_but_those_that_hold_or_wait() -> None:
    going_on = {name for name in BASES if not state_of("s", name).is_over}
    assert going_on == {"PENDING", "RUNNING", "SUSPENDED"}
    assert all(state_of("s", word).is_over for word in ("REQUEUED", "RESIZING", "REVOKED"))
