"""What a person writes about the rest of a grant at a close: how much of it the next period gets. Pure."""

import re
from decimal import Decimal
from typing import NamedTuple

from gpuledger.kernel.amounts import GPU_MS_MAX, GPU_MS_PER_GPU_HOUR, WEIGHT_ONE, from_gpu_hours, gpu_hours
from gpuledger.kernel.errors import Refused

_HOURS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")
_HINT = "write none, all, max 100, min 10 or min 10 max 100: GPU-hours with at most six decimals"


class Rollover(NamedTuple):
    """How much of a lot the next period gets: min(maximum, max(rest, minimum)).

    The formula is the one that OpenMeter publishes for grants at a reset: balance after the reset =
    min(maximum, max(balance before, minimum)).

    Args:
        minimum_gpu_ms: The next period gets at least this, even when less was left; unweighted gpu_ms.
        maximum_gpu_ms: It gets at most this; None is no upper bound.
    """

    minimum_gpu_ms: int = 0
    maximum_gpu_ms: int | None = None

    @classmethod
    def parse(cls, text: str | None) -> "Rollover | None":
        """Read a rule as people write it: ``none``, ``all``, ``max H``, ``min H``, ``min H max H``.

        Args:
            text: The rule; H is GPU-hours with at most six decimals.

        Returns:
            The limits, or None when nothing is carried over (``none``, or no rule at all).

        Raises:
            Refused: When it is none of these, the minimum exceeds the maximum, a bound is more than one
                order moves or no whole number of gpu_ms.
        """
        if text is None:
            return None
        match text.split():
            case ["none"]:
                return None
            case ["all"]:
                return cls()
            case ["min", least]:
                return cls(_bound(least))
            case ["max", most]:
                return cls(0, _bound(most))
            case ["min", least, "max", most]:
                minimum, maximum = _bound(least), _bound(most)
                if minimum > maximum:
                    raise Refused(f"rollover: min {least} exceeds max {most}", hint=_HINT)
                return cls(minimum, maximum)
        raise Refused(f"rollover: {text!r} is no rule", hint=_HINT)

    @property
    def text(self) -> str:
        """The rule in its one spelling, as ``parse`` reads it."""
        least = f"min {_exact_gpu_hours(self.minimum_gpu_ms)}" if self.minimum_gpu_ms else ""
        most = "" if self.maximum_gpu_ms is None else f"max {_exact_gpu_hours(self.maximum_gpu_ms)}"
        return " ".join(part for part in (least, most) if part) or "all"

    def carried(self, rest: int) -> int:
        """Return what the next period gets of a lot of which ``rest`` is left; both weighted."""
        wanted = max(rest, self.minimum_gpu_ms * WEIGHT_ONE)
        return wanted if self.maximum_gpu_ms is None else min(self.maximum_gpu_ms * WEIGHT_ONE, wanted)


def written(rollover: str | None) -> str | None:
    """Return a rule in its one spelling, as events keep it: single spaces, nothing needless.

    Raises:
        Refused: As ``Rollover.parse``.
    """
    rule = Rollover.parse(rollover)
    if rule is None:
        return None if rollover is None else "none"
    return rule.text


def _exact_gpu_hours(gpu_ms: int) -> str:
    # Exact: what was parsed had six decimals at most.
    return format((Decimal(gpu_ms) / GPU_MS_PER_GPU_HOUR).normalize(), "f")


def _bound(word: str) -> int:
    if not _HOURS.fullmatch(word):
        raise Refused(f"rollover: {word!r} is no number of GPU-hours", hint=_HINT)
    try:
        amount = from_gpu_hours(Decimal(word))
    except ValueError as error:
        raise Refused(f"rollover: {error}", hint=_HINT) from error
    if amount > GPU_MS_MAX:
        raise Refused(
            f"rollover: {word} GPU-hours is more than one order moves",
            hint=f"write at most {gpu_hours(GPU_MS_MAX)}",
        )
    return amount
