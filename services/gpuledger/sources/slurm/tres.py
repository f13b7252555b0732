"""Slurm's trackable resources (TRES) and generic resources (GRES) -> GPUs in milli-GPU.

A TRES names the same GPUs up to twice: ``gres/gpu=8`` counts all of them, ``gres/gpu:h100=8`` those of a type.
The two are never added. TRES are totals of a job, so nothing is multiplied by nodes. Memory, utilisation and
billing stand beside them and count no GPUs.

A part of a GPU (a MIG profile, a shard, a percentage of MPS) is worth what a table says; what the table does not
name is refused, not guessed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.slices import part_of
from gpuledger.sources.values import GPU_LIMIT, Odd, gpu_count, shown

_SLICED = re.compile(r"(?:(.*?)[_.:-])??((?:\dc\.)?\d+g\.\d+gb\S*)", re.IGNORECASE)
"""A type of GRES that is a slice: a profile, perhaps after the model, such as ``a100_1g.5gb``."""

_DETAIL = re.compile(r"\(.*\)$")
_KINDS = frozenset(("gpu", "shard", "mps"))
_CACHE_LIMIT = 1 << 14

MPS_PER_GPU = 100
"""Slurm counts MPS in percent of a GPU."""


class Gpus(NamedTuple):
    """GPUs that a record names.

    Args:
        milli: All of them, in milli-GPU.
        model: Their type; of several the milli-GPU of each, such as ``a100:4000,h100:4000``; None when some of
            them have no type.
        oddities: What is odd about the record.
    """

    milli: int
    model: str | None = None
    oddities: tuple[Odd, ...] = ()


class Tres:
    """Reads TRES and GRES; remembers what it has read, since few of them differ.

    Args:
        fractions: GRES -> milli-GPU of one unit, such as ``{"shard": 125, "gpu:1g.24gb": 142}``; it goes before
            the table.
    """

    def __init__(self, fractions: Mapping[str, int] | None = None) -> None:
        self._fractions = dict(fractions or {})
        self._texts: dict[str, Gpus | None] = {}
        self._lists: dict[tuple[tuple[str, str], ...], Gpus | None] = {}

    def text(self, field: str, value: str) -> Gpus | None:
        """Return the GPUs of a string such as ``cpu=8,gres/gpu=2,gres/gpu:h100=2``; None when it names none.

        Raises:
            BadRecord: When a count is no number, or a part of a GPU is not known.
        """
        found = self._texts.get(value, value)
        if found is not value:
            assert not isinstance(found, str)  # noqa: S101 - narrows the type
            return found
        pairs = [
            (name.removeprefix("gres/"), count)
            for item in value.split(",")
            if item.startswith("gres/")
            for name, _, count in [item.partition("=")]
        ]
        result = self._gpus(field, pairs)
        if len(self._texts) < _CACHE_LIMIT:
            self._texts[value] = result
        return result

    def items(self, field: str, items: Iterable[tuple[str, int]]) -> Gpus | None:
        """Return the GPUs of a list of GRES and counts, such as ``("gpu:h100", 2)``; None when it names none.

        Raises:
            BadRecord: When a count is negative or too large, or a part of a GPU is not known.
        """
        pairs = tuple((name, str(count)) for name, count in items)
        if not pairs:
            return None
        if pairs not in self._lists:
            result = self._gpus(field, pairs)
            if len(self._lists) >= _CACHE_LIMIT:
                return result
            self._lists[pairs] = result
        return self._lists[pairs]

    def details(self, field: str, listed: Iterable[str]) -> Gpus | None:
        """Return the GPUs of what each host of a job holds, such as ``gpu:h100:4(IDX:0-3)``; None for none.

        The entries are of one host each, and are added.

        Raises:
            BadRecord: When an entry cannot be read, or a part of a GPU is not known.
        """
        sums: dict[str, int] = {}
        for entry in listed:
            for part in re.split(r",(?![^(]*\))", entry):
                name, _, count = _DETAIL.sub("", part.strip()).rpartition(":")
                if name.partition(":")[0] in _KINDS:
                    sums[name] = sums.get(name, 0) + gpu_count(field, count)
        if "gpu" in sums:  # some host names a type and some does not: as a TRES it would be the total
            sums["gpu"] = sum(n for name, n in sums.items() if name.partition(":")[0] == "gpu")
        return self.items(field, sums.items())

    def uneven(
        self, field: str, hosts: Sequence[str], listed: Sequence[str], held: Gpus | None
    ) -> dict[str, int] | None:
        """Return milli-GPU by host of a job whose hosts do not all hold as much; None where they do, or nobody knows.

        Args:
            field: Where it is said.
            hosts: The hosts of the job.
            listed: What each of them holds, in the same order, such as ``gpu:h100:4(IDX:0-3)``.
            held: What the job holds in all; what does not add up to it says nothing.

        Raises:
            BadRecord: When an entry cannot be read, or a part of a GPU is not known.
        """
        if held is None or len(hosts) != len(listed) or len(set(listed)) < 2:  # noqa: PLR2004 - two differ
            return None
        each: dict[str, int] = {}
        for host, entry in zip(hosts, listed, strict=True):
            there = self.details(field, [entry])
            each[host] = 0 if there is None else there.milli
        differ = len(set(each.values())) > 1 and all(each.values())
        return each if differ and sum(each.values()) == held.milli else None

    def _gpus(self, field: str, pairs: Iterable[tuple[str, str]]) -> Gpus | None:
        counts = {
            name: gpu_count(f"{field}: {name}", count)
            for name, count in pairs
            if name.partition(":")[0] in _KINDS
        }
        if not counts:
            return None
        whole = counts.pop("gpu", None)
        types = {name.removeprefix("gpu:"): n for name, n in counts.items() if name.startswith("gpu:")}
        parts = {name: n for name, n in counts.items() if not name.startswith("gpu:")}
        typed = sum(types.values())
        oddities: list[Odd] = []
        if whole is not None and typed > whole:
            oddities.append(
                ("gpu-types-differ", f"{field}: {whole} GPUs, but {typed} by type; {whole} are booked")
            )
            types, typed = {}, 0
        by_type = {name: self._typed(field, name, n) for name, n in sorted(types.items()) if n}
        rest = (whole - typed) * GPU_MILLI if whole is not None else 0
        rest += sum(n * self._part(field, name) for name, n in parts.items())
        milli = rest + sum(by_type.values())
        if milli > GPU_LIMIT * GPU_MILLI:
            raise BadRecord(f"{field}: {milli} milli-GPU are more than any job has", code="out-of-bounds")
        return Gpus(milli, None if rest else _model(by_type), tuple(oddities))

    def _typed(self, field: str, name: str, count: int) -> int:
        """Return what GPUs of a type are in milli-GPU; slices are rounded down together, never above their device."""
        own = self._fractions.get(f"gpu:{name}")
        if own is not None:
            return count * own
        sliced = _SLICED.fullmatch(name)
        if sliced is None:
            return count * GPU_MILLI
        part = part_of(sliced[2], sliced[1] or "")
        if part is None:
            raise BadRecord(
                f"{field}: {shown(name)} is a part of a GPU of unknown size",
                code="unknown-fraction",
                hint=f"say how many milli-GPU one is: gpu:{name}=142",
            )
        return part.milli(count)

    def _part(self, field: str, name: str) -> int:
        """Return what one shard or one percent of MPS is in milli-GPU."""
        kind = name.partition(":")[0]
        own = self._fractions.get(name, self._fractions.get(kind))
        if own is not None:
            return own
        if kind == "mps":
            return GPU_MILLI // MPS_PER_GPU
        raise BadRecord(
            f"{field}: how large a shard is stands in no record",
            code="unknown-fraction",
            hint="say how many milli-GPU one is, by the Count of gres.conf: shard=125 for 8 shards of each GPU",
        )


def _model(by_type: Mapping[str, int]) -> str | None:
    if len(by_type) > 1:
        return ",".join(f"{name}:{milli}" for name, milli in by_type.items())
    return next(iter(by_type), None)
