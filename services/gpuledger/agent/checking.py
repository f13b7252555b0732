"""What a host's devices tell of their health, as observations: each trouble once, and a clean check when it is over.

A device that had an error is not healthy because it is quiet. It is clean once it was reset - then its counters
began anew - and answers without trouble.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from gpuledger.agent.driver import Device, Snapshot
from gpuledger.events.host import HealthKind
from gpuledger.kernel.errors import Unavailable

_TROUBLES: tuple[HealthKind, ...] = ("lost", "remap_failed", "remap_pending")


class _Seen(msgspec.Struct):
    """What is remembered of a device, also over a restart of the agent."""

    energy_mj: int | None = None
    troubles: list[str] = []


class Health:
    """Compares what devices say with what they said before.

    Args:
        file: Where that is remembered.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._seen = msgspec.json.decode(file.read_bytes(), type=dict[str, _Seen])
        except FileNotFoundError:
            self._seen = {}
        except (OSError, msgspec.DecodeError) as error:
            raise Unavailable(f"{file} cannot be read: {error}", hint="remove it; it is made anew") from error
        self._written = msgspec.json.encode(self._seen)

    def look(self, device: Device, said: Snapshot | None) -> Iterator[HealthKind]:
        """Yield what is new about a device; ``said`` is None when it cannot be reached."""
        seen = self._seen.setdefault(device.uuid, _Seen())
        present = set(_present(said))
        before = set(seen.troubles)
        was_reset = _fell(seen.energy_mj, said)
        yield from (kind for kind in _TROUBLES if kind in present - before)
        if not present and (before or was_reset):
            yield "clean"
        seen.troubles = sorted(present)
        if said is not None and said.energy_mj is not None:
            seen.energy_mj = said.energy_mj

    def save(self) -> None:
        """Keep what is known over a restart.

        Raises:
            Unavailable: When the file cannot be written.
        """
        data = msgspec.json.encode(self._seen)
        if data == self._written:
            return
        draft = self._file.with_suffix(".draft")
        try:
            draft.write_bytes(data)
            draft.replace(self._file)
        except OSError as error:
            raise Unavailable(f"{self._file} cannot be written: {error.strerror}") from error
        self._written = data


def _present(said: Snapshot | None) -> Iterable[HealthKind]:
    if said is None:
        yield "lost"
        return
    if said.remap_failed:
        yield "remap_failed"
    if said.remap_pending:
        yield "remap_pending"


def _fell(before_mj: int | None, said: Snapshot | None) -> bool:
    return (
        before_mj is not None
        and said is not None
        and said.energy_mj is not None
        and said.energy_mj < before_mj
    )
