"""What was set, when and by which cycle: files beside the enforcer, which is where it is true.

``NAME.json`` holds what was set last of each field that stays as it is set: another value later is a drift.
``NAME.2026-11.ndjson`` holds every change of a month, one line each, added to and never rewritten.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from gpuledger.enforce.plan import Applied, Target
from gpuledger.kernel.clock import instant, iso
from gpuledger.kernel.errors import Conflict, Refused


class Memory:
    """The changes that were made to one scheduler.

    Args:
        folder: Where the files lie; made when something is first set.
        name: What their names begin with.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name

    def applied(self) -> Applied:
        """Return key -> what was set last; two values where a crash left open whether the second was set.

        Raises:
            Refused: When the file is damaged.
        """
        try:
            return msgspec.json.decode(self._state.read_bytes(), type=dict[str, tuple[str, ...]])
        except FileNotFoundError:
            return {}
        except (msgspec.DecodeError, OSError) as error:
            raise Refused(
                f"{self._state}: cannot be read: {error}",
                hint="remove it: the next run sets what differs, and tells drift from then on",
            ) from error

    def changes(self) -> list[dict[str, Any]]:
        """Return every change that was made, in the order of time; a line that a crash cut off is passed over."""
        paths = sorted(self.folder.glob(f"{self.name}.*.ndjson"))
        lines = [
            line for path in paths for line in path.read_text(encoding="utf-8").splitlines(keepends=True)
        ]
        return [json.loads(line) for line in lines if line.endswith("}\n")]

    @contextmanager
    def writing(self) -> Iterator["Writing"]:
        """Keep others from setting the same scheduler meanwhile.

        Raises:
            Conflict: When another enforcer is at it.
            Refused: When the file is damaged.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{self.name}.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Conflict(
                    f"{lock.name}: another enforcer is at work", hint="wait for it, or stop it"
                ) from error
            yield Writing(self.folder, self.name, self.applied())

    @property
    def _state(self) -> Path:
        return self.folder / f"{self.name}.json"


class Writing:
    """Notes what is set, before and after.

    Args:
        folder: Where the files lie.
        name: What their names begin with.
        applied: What was set last.
    """

    def __init__(self, folder: Path, name: str, applied: Applied) -> None:
        self._folder, self._name = folder, name
        self.applied: Applied = applied

    @contextmanager
    def setting(self, target: Target, *, cycle: str, at_s: int) -> Iterator[None]:
        """Note that a field is being set, and, unless that fails, that it was."""
        before = self.applied.get(target.key, ())
        if target.kept:
            self._keep({**self.applied, target.key: (*before[:1], target.wanted)})
        try:
            yield
        except Exception:
            if target.kept:
                self._keep({key: values for key, values in self.applied.items() if key != target.key})
                if before:
                    self._keep({**self.applied, target.key: before})
            raise
        if target.kept:
            self._keep({**self.applied, target.key: (target.wanted,)})
        self._tell(target, cycle, at_s)

    def settle(self, found: Mapping[str, str]) -> None:
        """Note fields that were found as they have to be: from now on another value is a drift."""
        news = {key: (value,) for key, value in found.items() if self.applied.get(key) != (value,)}
        if news:
            self._keep({**self.applied, **news})

    def _keep(self, applied: Applied) -> None:
        self.applied = applied
        draft = self._folder / f".{self._name}.draft"
        draft.write_bytes(msgspec.json.encode(applied, order="sorted"))
        draft.replace(self._folder / f"{self._name}.json")

    def _tell(self, target: Target, cycle: str, at_s: int) -> None:
        at = instant(at_s)
        told = {
            "at": iso(at), "cycle": cycle, "object": target.object, "field": target.field, "from": target.now,
            "to": target.wanted, "reason": target.sentence, "command": target.action.shown,
        }  # fmt: skip
        with (self._folder / f"{self._name}.{at:%Y-%m}.ndjson").open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")  # a crash cut the line before off
            file.write(json.dumps(told, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
