"""A recorded cycle computed again from the journal, and compared with its record byte for byte."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from gpuledger.database.engine import Reader
from gpuledger.events.budget import AllocationIssued
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import cycles
from gpuledger.policy.cycle import run_cycle
from gpuledger.policy.kept import decisions_of
from gpuledger.policy.reading import read_state
from gpuledger.policy.recording import Decided
from gpuledger.policy.state import PolicyConfig

_SHOWN = 120
"""Of a value that differs so many characters are shown."""

_DERIVED = ("decisions_digest", "input_digest", "config_version", "cycle")
"""Say only that something differs: what it is, is named first."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a replay.

    Args:
        cycle: The cycle's id.
        seq: Its row in the cluster's book.
        at_s: The instant that it decided for.
        difference: The first place where the record says something else than the replay; None when they are equal.
        decisions_digest: SHA-256 of all decisions, as they came out.
    """

    cycle: str
    seq: int
    at_s: int
    difference: str | None
    decisions_digest: str | None

    @property
    def ok(self) -> bool:
        """Tell whether the replay is the record, byte for byte."""
        return self.difference is None

    def as_json(self) -> dict[str, Any]:
        """Return the replay under the published keys."""
        return {
            "ok": self.ok,
            "cycle": self.cycle,
            "seq": self.seq,
            "at_s": self.at_s,
            "decisions_digest": self.decisions_digest,
            "difference": self.difference,
        }


def recompute(reader: Reader, recorded: cycles.Recorded) -> Decided:
    """Compute a recorded cycle again, from what its books held and the configuration it was computed under.

    Raises:
        NotFound: When its cluster is not among the books that it names.
        Refused: When the state cannot be read.
    """
    issued = recorded.issued
    config = PolicyConfig(**issued.config)  # type: ignore[arg-type]  # journalled from one
    state = read_state(reader, issued.cluster, recorded.at_s, config, vector=issued.sequences)
    cycle = run_cycle(state, config)
    return Decided.of(state, config, issued.sequences, cycle, every_s=issued.every_s, form=issued.form)


def replay(reader: Reader, cycle: str) -> Replayed:
    """Compute a cycle again and compare.

    Args:
        reader: A snapshot.
        cycle: The cycle's id.

    Raises:
        NotFound: When no such cycle is recorded.
    """
    recorded = cycles.find(reader, cycle)
    if recorded is None:
        raise NotFound(
            f"cycle {cycle!r} is not recorded",
            hint="ids look like CLUSTER@2026-12-01T09:00:00Z#0123456789ab; gpuledger cycle --json prints one, and so"
            " does GET /v1/allocations/current",
        )
    again = recompute(reader, recorded)
    difference = _difference(recorded.issued, again.issued)
    if difference is not None and (every := decisions_of(reader, recorded.issued.cluster, recorded)):
        # Those that are kept say which decision it is.
        own = next(_unlike(list(every), again.published["decisions"], "decisions"), None)
        difference = own or difference
    return Replayed(cycle, recorded.seq, recorded.at_s, difference, again.issued.decisions_digest)


def _difference(recorded: AllocationIssued, again: AllocationIssued) -> str | None:
    if msgspec.json.encode(recorded) == msgspec.json.encode(again):
        return None
    before, after = (dict(sorted(msgspec.to_builtins(issued).items())) for issued in (recorded, again))
    for derived in _DERIVED:
        for side in (before, after):
            side[derived] = side.pop(derived, None)  # last in the order
    return next(_unlike(before, after, "record"), "record: its keys stand in another order")


def _unlike(recorded: object, again: object, where: str) -> Iterator[str]:
    """Yield each place where two documents differ, in the order of the recorded one."""
    if isinstance(recorded, dict) and isinstance(again, dict):
        for key in (*recorded, *(key for key in again if key not in recorded)):
            yield from _unlike(recorded.get(key), again.get(key), f"{where}.{key}")
    elif isinstance(recorded, list) and isinstance(again, list):
        for place, (one, other) in enumerate(zip(recorded, again, strict=False)):
            yield from _unlike(one, other, f"{where}[{place}]")
        if len(recorded) != len(again):
            yield f"{where}: {len(recorded)} recorded, {len(again)} replayed"
    elif recorded != again:
        yield f"{where}: recorded {_shown(recorded)}, replayed {_shown(again)}"


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
