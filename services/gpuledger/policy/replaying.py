"""A recorded cycle computed again from the journal, and compared with its record byte for byte."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from gpuledger.database.engine import Reader
from gpuledger.events.budget import AllocationAmended, AllocationIssued
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import cycles
from gpuledger.policy.amending import Base, decide, turnover_of
from gpuledger.policy.cycle import run_cycle
from gpuledger.policy.incremental import prepare
from gpuledger.policy.kept import decisions_of
from gpuledger.policy.reading import read_state, read_submitted
from gpuledger.policy.recording import Decided, input_digest
from gpuledger.policy.rules import RULES, UNNUMBERED, told
from gpuledger.policy.state import ClusterState, PolicyConfig

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
        decisions_digest: SHA-256 of all decisions, as they came out; None of an amendment, which holds its own whole.
        rules: The version of the rules that decided it.
    """

    cycle: str
    seq: int
    at_s: int
    difference: str | None
    decisions_digest: str | None
    rules: int

    @property
    def ok(self) -> bool:
        """Tell whether the replay is the record, byte for byte."""
        return self.difference is None

    @property
    def is_of_other_rules(self) -> bool:
        """Tell whether a difference may come of the rules: this program has others than those that decided it."""
        return self.difference is not None and self.rules != RULES

    @property
    def verdict(self) -> str:
        """Say in a sentence what came of it."""
        if self.difference is None:
            return "the same, byte for byte"
        if not self.is_of_other_rules:
            return self.difference
        return (
            f"decided {told(self.rules)}, and this program has version {RULES}, which decides otherwise:"
            f" {self.difference}. Whether the record was changed, gpuledger audit verify says"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the replay under the published keys."""
        return {
            "ok": self.ok,
            "cycle": self.cycle,
            "seq": self.seq,
            "at_s": self.at_s,
            "decisions_digest": self.decisions_digest,
            "difference": self.difference,
            "rules": self.rules,
            "rules_here": RULES,
        }


def recompute(reader: Reader, recorded: cycles.Recorded) -> Decided:
    """Compute a recorded cycle again, from what its books held and the configuration it was computed under.

    Raises:
        NotFound: When its cluster is not among the books that it names.
        Refused: When the state cannot be read.
    """
    issued = recorded.issued
    state, config = _told(reader, recorded)
    cycle = run_cycle(state, config)
    return Decided.of(
        state,
        config,
        issued.sequences,
        cycle,
        every_s=issued.every_s,
        form=issued.form,
        rules=issued.rules,
    )


def recompute_amendment(reader: Reader, found: cycles.Amendment) -> AllocationAmended | None:
    """Compute a recorded amendment again: its cycle from what that was told, and each submission since, in order.

    Returns:
        The amendment; None when the cycle or a submission is not what it was, so that it cannot be amended so.

    Raises:
        NotFound: When the cluster is not among the books that the cycle names.
        Refused: When the state cannot be read.
    """
    recorded = cycles.find(reader, found.amended.base)
    if recorded is None:
        return None
    state, config = _told(reader, recorded)
    digest = input_digest(state, config, recorded.issued.sequences)
    base = Base.of(recorded.issued, state, prepare(state, config), digest=digest)
    again = None
    for each in cycles.amendments(reader, recorded.place, at_s=found.at_s, seq=found.seq):
        said = each.amended
        workloads = read_submitted(
            reader, state, each.at_s, config, only=said.submissions, vector=said.sequences
        )
        looked = replace(base, touched=tuple(said.changed))
        turnover, _ = turnover_of(reader, looked, each.at_s, said.sequences)
        is_like = workloads or turnover
        decided = decide(looked, workloads, each.at_s, said.sequences, turnover) if is_like else None
        if decided is None:
            return None
        base, again = decided.base, decided.fact
    return again


def _told(reader: Reader, recorded: cycles.Recorded) -> tuple[ClusterState, PolicyConfig]:
    """Return what a recorded cycle was told, and its configuration."""
    issued = recorded.issued
    config = PolicyConfig.read(issued.config)
    return read_state(reader, issued.cluster, recorded.at_s, config, vector=issued.sequences), config


def replay(reader: Reader, cycle: str) -> Replayed:
    """Compute a cycle again and compare.

    Args:
        reader: A snapshot.
        cycle: The cycle's id.

    Raises:
        NotFound: When no such cycle is recorded.
    """
    recorded = cycles.find(reader, cycle)
    if recorded is None and (amendment := cycles.find_amendment(reader, cycle)) is not None:
        return _replay_amendment(reader, amendment)
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
    digest, rules = again.issued.decisions_digest, recorded.issued.rules
    return Replayed(cycle, recorded.seq, recorded.at_s, difference, digest, rules)


def _replay_amendment(reader: Reader, found: cycles.Amendment) -> Replayed:
    again = recompute_amendment(reader, found)
    gone = "record: what it amends is not what it was"
    difference = gone if again is None else _difference(found.amended, again)
    base = cycles.find(reader, found.amended.base)
    rules = UNNUMBERED if base is None else base.issued.rules
    return Replayed(found.amended.cycle, found.seq, found.at_s, difference, None, rules)


def _difference(
    recorded: AllocationIssued | AllocationAmended, again: AllocationIssued | AllocationAmended
) -> str | None:
    if msgspec.json.encode(recorded) == msgspec.json.encode(again):
        return None
    before, after = (dict(sorted(msgspec.to_builtins(issued).items())) for issued in (recorded, again))
    for derived in _DERIVED:
        for side in (before, after):
            if derived in side:
                side[derived] = side.pop(derived)  # last in the order
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
