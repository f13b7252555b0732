"""Policy data that a book has taken over -> the rate card and the rules that its charges follow. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gpuledger.events.budget import PolicyApplied
from gpuledger.ledger import mapping, rates
from gpuledger.ledger.mapping import MAPPING, Rules
from gpuledger.ledger.rates import RATE_CARD, Rates


class Applied(NamedTuple):
    """A version of policy data in a book: its row, from when it holds in seconds, and what it says."""

    seq: int
    from_s: int
    fact: PolicyApplied


def card(applied: Iterable[Applied]) -> Rates:
    """Return the rate card that the versions make up."""
    return Rates.of(
        rates.Version(a.from_s, a.fact.org_seq, a.fact.weights or {})
        for a in applied
        if a.fact.policy == RATE_CARD
    )


def rules(applied: Iterable[Applied], cluster: str) -> Rules:
    """Return the mapping that the versions make up, as a cluster reads it."""
    return Rules(
        [
            mapping.Version(a.from_s, a.fact.org_seq, a.fact.rules or ())
            for a in applied
            if a.fact.policy == MAPPING
        ],
        cluster,
    )


def rules_by_row(applied: Sequence[Applied], cluster: str) -> list[tuple[int, Rules]]:
    """Return each row that changed the mapping, in sequence, with the mapping from that row on."""
    rows = sorted((a for a in applied if a.fact.policy == MAPPING), key=lambda a: a.seq)
    return [(row.seq, rules(rows[:count], cluster)) for count, row in enumerate(rows, 1)]
