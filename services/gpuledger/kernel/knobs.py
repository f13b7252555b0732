"""The knobs of the policy: their names, ranges and defaults, declared once.

They are policy data (law 12): set by a file, with an effective time, in the ``~org`` book. What reads a file, what
takes an event and what decides a cycle know them from here, so that none of them accepts what another does not.
"""

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from gpuledger.kernel.errors import Refused
from gpuledger.kernel.near import did_you_mean

PER_MILLE = 1000
LONGEST_S = 366 * 86_400
"""No length of time is set beyond a leap year."""

Value = int | str


class Range(NamedTuple):
    """What a knob may be: a whole number in a range, or one of some words.

    Args:
        least: The lowest number.
        most: The highest.
        words: The words; then it is no number.
    """

    least: int = 1
    most: int = LONGEST_S
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it for people."""
        return ", ".join(self.words) if self.words else f"a whole number from {self.least} to {self.most}"

    def holds(self, value: object) -> bool:
        """Say whether a value is within."""
        if self.words:
            return value in self.words
        return type(value) is int and self.least <= value <= self.most


_RANGE = "range"
_BEFORE = "before"
_S = Range()
_S_OR_0 = Range(least=0)
_PER_MILLE = Range(least=0, most=PER_MILLE)
_PER_MILLE_ABOVE_0 = Range(most=PER_MILLE)


def _knob(default: Value, within: Range, *, before: Value | None = None) -> Any:  # noqa: ANN401 - as dataclasses.field
    """Declare a knob; one that came later says what was decided by before it came."""
    return dataclasses.field(default=default, metadata={_RANGE: within, _BEFORE: before})


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyConfig:
    """The knobs of the policy: whole numbers, and words.

    Args:
        mode: How the past is remembered: all of a window alike, or with a half-life.
        window_s: Length of the look-back window; use and entitlement are integrated over it by the caller.
        half_life_s: After so long a use weighs half, in the mode ``half-life``.
        unit: What use and entitlement are counted in: physical GPU-time, or weighted by the rate card.
        scope: Whose past counts: that of the cluster, or that of all clusters.
        protection_cap_s: The longest minimum runtime that is protected; also how far the order looks ahead.
        floor_alpha_permille: alpha of the floor: an account that waits and runs below (1 - alpha) of its
            present entitlement comes first, with gangs that stay within it.
        issue_kappa_permille: kappa of the issue: an over-served account keeps at least this part of its share
            as weight. Above 0: a weight of 0 would leave GPUs idle that an account with a share asks for.
        division: What GPUs are issued by: how far accounts fell behind, or credits for what they left to others.
        shared_permille: alpha of the division by credits: the part of a supply that is the siblings' pool.
        horizon_s: A deficit is made good over this long.
        quantum_s: Every start of funded work is safe from other accounts' work for so long; also the occupancy
            that the order expects of a start without a minimum runtime.
        hysteresis_permille: delta of preemption: by how much the ratio of who loses GPUs exceeds the ratio of who
            gets them.
        notice_s: Runs that are to leave whatever the ratios are foreseen at least so long.
        grace_s: From the order to leave until the GPUs are expected back.
        victims: Which runs leave first of those that may: who lose least work, or whose accounts used most.
        reservations: Whether the first of a size class that finds no room gets a date.
        unallocated_keeps_after_s: Once unallocated work has waited for so long, hosts are kept for it from other
            unallocated work; 0 for never.
        availability_target_permille: What is hoped for of the first layer; like those of the other layers it is shown
            beside the figure and decides nothing. 0 for none.
        occupancy_target_permille: Of the second.
        impact_target_permille: Of the third.
        utilisation_target_permille: Of the fourth.
    """

    mode: str = _knob("window", Range(words=("window", "half-life")))
    window_s: int = _knob(7 * 86_400, _S)
    half_life_s: int = _knob(7 * 86_400, Range(least=6 * 3_600, most=92 * 86_400))
    unit: str = _knob("weighted", Range(words=("physical", "weighted")))
    scope: str = _knob("cluster", Range(words=("cluster", "clusters")))
    protection_cap_s: int = _knob(8 * 3_600, _S)
    floor_alpha_permille: int = _knob(500, _PER_MILLE)
    issue_kappa_permille: int = _knob(500, _PER_MILLE_ABOVE_0)
    division: str = _knob("deficit", Range(words=("deficit", "credits")))
    shared_permille: int = _knob(500, _PER_MILLE)
    horizon_s: int = _knob(86_400, _S)
    quantum_s: int = _knob(900, _S)
    hysteresis_permille: int = _knob(50, _PER_MILLE)
    notice_s: int = _knob(900, _S_OR_0)
    grace_s: int = _knob(60, _S_OR_0)
    victims: str = _knob("least-work", Range(words=("least-work", "most-used")), before="most-used")
    reservations: str = _knob("heads", Range(words=("heads", "none")), before="heads")
    unallocated_keeps_after_s: int = _knob(0, _S_OR_0, before=0)
    availability_target_permille: int = _knob(0, _PER_MILLE, before=0)
    occupancy_target_permille: int = _knob(0, _PER_MILLE, before=0)
    impact_target_permille: int = _knob(0, _PER_MILLE, before=0)
    utilisation_target_permille: int = _knob(0, _PER_MILLE, before=0)

    def __post_init__(self) -> None:
        """Refuse values outside their ranges, and a quantum or notice beyond the protection cap."""
        for name in KNOBS:
            check(name, getattr(self, name))
        if max(self.quantum_s, self.notice_s) > self.protection_cap_s:
            raise Refused(
                f"a quantum of {self.quantum_s} s or a notice of {self.notice_s} s exceeds the protection cap of"
                f" {self.protection_cap_s} s",
                hint="a gang at the head is to start within cap and grace; neither may be longer than the cap",
            )

    @property
    def version(self) -> str:
        """Digest of every knob: equal settings have equal versions, on any machine."""
        lines = (f"{name}={value}" for name, value in self.written().items())
        return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()

    def protected_s(self, minimum_runtime_s: int) -> int:
        """Return how long a minimum runtime protects a funded run: all of it, up to the cap."""
        return min(minimum_runtime_s, self.protection_cap_s)

    def written(self) -> dict[str, Value]:
        """Return the knobs as a cycle's record has them.

        A knob is left out as long as it says what was done before it came: so records and versions of that time are
        what they were.
        """
        values = {name: getattr(self, name) for name in KNOBS}
        return {name: value for name, value in values.items() if value != _BEFORE_IT_CAME.get(name)}

    @classmethod
    def read(cls, written: Mapping[str, Value]) -> Self:
        """Return the knobs that a cycle's record was decided by."""
        return cls.of({**_BEFORE_IT_CAME, **written})

    @classmethod
    def of(cls, settings: Mapping[str, Value]) -> Self:
        """Return the defaults with some knobs set.

        Raises:
            Refused: When a knob is not known, or a value does not fit.
        """
        for name, value in settings.items():
            check(name, value)
        return cls(**settings)  # type: ignore[arg-type]  # check has seen to it


KNOBS: Mapping[str, Range] = {
    field.name: field.metadata[_RANGE] for field in dataclasses.fields(PolicyConfig)
}
"""What each knob may be, in the order of the documentation."""
_BEFORE_IT_CAME: Mapping[str, Value] = {
    field.name: field.metadata[_BEFORE]
    for field in dataclasses.fields(PolicyConfig)
    if field.metadata[_BEFORE] is not None
}


def check(name: str, value: Value | None) -> None:
    """Check a setting of a knob; None takes back what was set.

    Raises:
        Refused: When there is no such knob, or it cannot be that; says what there is.
    """
    if name not in KNOBS:
        raise Refused(
            f"policy setting {name} is not known",
            hint=did_you_mean(name, KNOBS, f"there are {', '.join(KNOBS)}"),
        )
    if value is not None and not KNOBS[name].holds(value):
        raise Refused(f"policy setting {name} is {value!r}", hint=f"write {KNOBS[name]}")
