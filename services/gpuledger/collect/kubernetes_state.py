"""How far a collector has come, in a file: it starts again where it stood."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gpuledger.kernel.errors import Refused
from gpuledger.sources.kubernetes.sharing import Kept


class _Stored(msgspec.Struct):
    versions: dict[str, str]
    living: dict[str, dict[str, msgspec.Raw]]
    seen: dict[str, int]
    jobs: dict[str, tuple[list[str], int | None]] = msgspec.field(default_factory=dict)
    shares: Kept = msgspec.field(default_factory=Kept)


@dataclass(slots=True)
class Position:
    """Where a collector stands.

    Args:
        versions: Kind -> the version up to which everything is booked.
        living: Kind -> uid -> the last state of each object that tells of GPUs and is there still.
        seen: Kind -> when the API last said anything of it, in seconds since the epoch.
        jobs: Kueue Workload -> the jobs whose pods book nothing because of it, and when it was gone.
        shares: Who holds which ResourceClaims.
    """

    versions: dict[str, str] = field(default_factory=dict)
    living: dict[str, dict[str, bytes]] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    jobs: dict[str, tuple[list[str], int | None]] = field(default_factory=dict)
    shares: Kept = field(default_factory=Kept)


class PositionFile:
    """Keeps a position in a file, whole or as it was before.

    Args:
        path: The file; made with its folder when it is first written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Position:
        """Return the position that was kept last; a new one where there is none.

        Raises:
            Refused: When the file is damaged.
        """
        try:
            stored = msgspec.json.decode(self.path.read_bytes(), type=_Stored)
        except FileNotFoundError:
            return Position()
        except (msgspec.DecodeError, OSError) as error:
            raise Refused(
                f"{self.path}: cannot be read: {error}",
                hint="remove it: everything is listed again, and what is booked is not booked twice",
            ) from error
        living = {kind: {uid: bytes(raw) for uid, raw in of.items()} for kind, of in stored.living.items()}
        return Position(stored.versions, living, stored.seen, stored.jobs, stored.shares)

    def write(self, position: Position) -> None:
        """Keep a position.

        Raises:
            Refused: When the file cannot be written.
        """
        living = {
            kind: {uid: msgspec.Raw(raw) for uid, raw in of.items()} for kind, of in position.living.items()
        }
        stored = _Stored(position.versions, living, position.seen, position.jobs, position.shares)
        text = msgspec.json.encode(stored)
        beside = self.path.with_suffix(".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
        except OSError as error:
            raise Refused(
                f"{self.path}: cannot be written: {error.strerror}",
                hint="check the data folder (GPULEDGER_HOME)",
            ) from error
