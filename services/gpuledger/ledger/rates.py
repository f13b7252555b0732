"""The rate card: what a GPU model's time weighs, in per mille, from which moment on (DESIGN section 7).

Physical GPU-time is multiplied, never divided, so that weighted amounts stay whole numbers:
gpu_ms_weighted = gpu_ms x weight. A model without an entry weighs 1000. GPUs of several models that one run holds
together are named with the milli-GPU of each, such as ``a100:4000,h100:4000``: each model weighs its own part.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from gpuledger.kernel.amounts import WEIGHT_ONE
from gpuledger.kernel.apportion import apportion

RATE_CARD = "rate_card"
"""The policy that rate cards are versions of."""


class Version(NamedTuple):
    """Weights that were set: from when, by which row of ``~org``, and what each model weighs."""

    from_s: int
    org_seq: int
    weights: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Rates:
    """Every weight that was or will be in force.

    Args:
        steps: Model -> (from when in seconds, weight in per mille), ascending in time.
    """

    steps: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, versions: Iterable[Version]) -> Self:
        """Return what the versions say together, whatever their order; of one moment the last set counts."""
        found: dict[str, dict[int, int]] = {}
        for version in sorted(versions, key=lambda v: (v.from_s, v.org_seq)):
            for model, weight in version.weights.items():
                found.setdefault(model, {})[version.from_s] = weight
        return cls({model: tuple(sorted(steps.items())) for model, steps in found.items()})

    def weight(self, model: str | None, at_s: int) -> int:
        """Return the weight in force at an instant."""
        steps = self.steps.get(model or "", ())
        index = bisect_right(steps, at_s, key=lambda step: step[0])
        return steps[index - 1][1] if index else WEIGHT_ONE

    def pieces(self, model: str | None, start_s: int, end_s: int) -> Iterator[tuple[int, int, int]]:
        """Cut ``[start_s, end_s)`` where the weight changes; yield (start, end, weight)."""
        edges = [at_s for at_s, _ in self.steps.get(model or "", ()) if start_s < at_s < end_s]
        for begin, end in zip([start_s, *edges], [*edges, end_s], strict=True):
            yield begin, end, self.weight(model, begin)

    def weighted(self, model: str | None, gpus_milli: int, start_s: int, end_s: int) -> int:
        """Return what GPUs held over ``[start_s, end_s)`` weigh, in gpu_ms x per mille."""
        if not self.steps:
            return gpus_milli * (end_s - start_s) * WEIGHT_ONE
        if model is not None and "," in model:
            return sum(
                self.weighted(name, milli, start_s, end_s) for name, milli in _parts(model, gpus_milli)
            )
        return sum(
            gpus_milli * (end - begin) * weight for begin, end, weight in self.pieces(model, start_s, end_s)
        )


def _parts(model: str, gpus_milli: int) -> Iterator[tuple[str, int]]:
    """Yield the models that stand together in one name, and how many of the GPUs are of each."""
    names, parts = [], []
    for part in model.split(","):
        name, _, milli = part.rpartition(":")
        names.append(name)
        parts.append(int(milli) if milli.isdigit() and milli.isascii() else 0)
    if not any(parts):  # a name with a comma in it, of whatever source
        yield "", gpus_milli
        return
    yield from zip(names, apportion(gpus_milli, parts), strict=True)


UNWEIGHTED = Rates()
"""Every model weighs 1000."""
