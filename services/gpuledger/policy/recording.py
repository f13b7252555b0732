"""The record of a cycle: journalled and queued in the outbox in one transaction, before it is published.

It names the book sequences, the configuration and the input that it was computed from.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from gpuledger.database.engine import Writer
from gpuledger.events.budget import AllocationIssued
from gpuledger.events.envelope import make
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, instant
from gpuledger.ledger import outbox
from gpuledger.ledger.append import append
from gpuledger.policy.cycle import Cycle
from gpuledger.policy.published import as_json
from gpuledger.policy.state import ClusterState, PolicyConfig
from gpuledger.streams.topics import ALLOCATIONS

SOURCE = "gpuledger/policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A cycle that was computed, with what it was computed from.

    Args:
        at_s: The instant that it decides for.
        sequences: Vector book -> sequence that the state was read under.
        config_version: Digest of the policy configuration.
        input_digest: SHA-256 of state, configuration and sequences, as hexadecimal digits.
        published: The cycle under its published keys.
    """

    at_s: int
    sequences: Mapping[str, int]
    config_version: str
    input_digest: str
    published: dict[str, Any]

    @classmethod
    def of(
        cls, state: ClusterState, config: PolicyConfig, sequences: Mapping[str, int], cycle: Cycle
    ) -> "Decided":
        """Name a computed cycle by its input: equal inputs have equal names, on any machine."""
        digest = hashlib.sha256(msgspec.json.encode((state, config, sequences), order="sorted")).hexdigest()
        cycle_id = f"{state.cluster}@{instant(state.at_s):%Y-%m-%dT%H:%M:%SZ}#{digest[:12]}"
        return cls(
            at_s=state.at_s,
            sequences=sequences,
            config_version=config.version,
            input_digest=digest,
            published=dict(as_json(cycle, cycle_id=cycle_id)),
        )


def record(writer: Writer, decided: Decided, *, clock: Clock, calendar: Calendar) -> bool:
    """Journal a cycle and queue it for publication; return whether it was new.

    Args:
        writer: A transaction of its own; the caller commits it.
        decided: The cycle.
        clock: Stamps the row.
        calendar: The organisation's days.
    """
    cluster, cycle_id = decided.published["cluster"], decided.published["cycle"]
    issued = AllocationIssued(
        cluster=cluster,
        cycle=cycle_id,
        sequences=dict(decided.sequences),
        config_version=decided.config_version,
        input_digest=decided.input_digest,
        record=decided.published,
    )
    event, value = make(id=f"cycle/{cycle_id}", source=SOURCE, at_s=decided.at_s, data=issued)
    appended = append(writer, cluster, [event], clock=clock, calendar=calendar)
    if appended.accepted:
        outbox.enqueue(writer, ALLOCATIONS, cluster, value)
    return bool(appended.accepted)
