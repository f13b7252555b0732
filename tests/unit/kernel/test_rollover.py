"""What is carried over: rules read as people write them, each with one spelling."""

import pytest

from gpuledger.kernel.amounts import GPU_MS_PER_GPU_HOUR
from gpuledger.kernel.errors import Refused
from gpuledger.kernel.rollover import Rollover, written

HOUR = GPU_MS_PER_GPU_HOUR


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("none", None),
        ("all", Rollover(0, None)),
        ("max 100", Rollover(0, 100 * HOUR)),
        ("max 0", Rollover(0, 0)),
        ("min 10", Rollover(10 * HOUR, None)),
        ("min 10 max 100", Rollover(10 * HOUR, 100 * HOUR)),
        ("min 0.5 max 0.5", Rollover(HOUR // 2, HOUR // 2)),
        ("max 0.000005", Rollover(0, 18)),
        (" min  10\tmax 20 ", Rollover(10 * HOUR, 20 * HOUR)),
    ],
)
def test_a_rule_is_read(text: str | None, expected: Rollover | None) -> None:
    assert Rollover.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no rule"),
        ("None", "is no rule"),
        ("ALL", "is no rule"),
        ("100", "is no rule"),
        ("all 100", "is no rule"),
        ("min", "is no rule"),
        ("max 100 min 10", "is no rule"),
        ("min 10 max 100 max 100", "is no rule"),
        ("min 10 max 9", "min 10 exceeds max 9"),
        ("max -1", "'-1' is no number"),
        ("max +1", "no number"),
        ("max 1e3", "no number"),
        ("max 1_0", "no number"),
        ("max NaN", "no number"),
        ("max x", "no number"),
        ("max 1.", "no number"),
        ("max .5", "no number"),
        ("max \u0661", "no number"),
        ("max 1\x00", "no number"),
        ("min 0.0000005", "no number"),
        ("max 0.000001", "is not a whole number of gpu_ms"),
        ("max 277777778", "more than one order moves"),
    ],
)
def test_what_is_no_rule_is_refused_with_the_grammar(text: str, said: str) -> None:
    with pytest.raises(Refused, match="rollover: ") as refused:
        Rollover.parse(text)
    assert said in refused.value.message
    assert "GPU-hours" in refused.value.message + refused.value.hint or "write at most" in refused.value.hint


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        (None, None),
        ("none", "none"),
        (" all", "all"),
        ("min  010   max 100.50", "min 10 max 100.5"),
        ("max 100.000000", "max 100"),
        ("max 0.0", "max 0"),
        ("min 0", "all"),
        ("min 0 max 0.000005", "max 0.000005"),
    ],
)
def test_a_rule_has_one_spelling(text: str | None, spelt: str | None) -> None:
    assert written(text) == spelt
    assert Rollover.parse(spelt) == Rollover.parse(text)


def test_a_spelling_of_no_rule_is_refused() -> None:
    with pytest.raises(Refused, match="is no rule"):
        written("some")
