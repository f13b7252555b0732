"""Differences between a file that people wrote and the ledger: shown first, then booked as commands."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gpuledger.database.engine import reading
from gpuledger.events.envelope import Event, book_of, make
from gpuledger.events.registry import Fact
from gpuledger.ingest.intake import Intake
from gpuledger.ledger import queries
from gpuledger.ledger.identity import impersonal


class Change(NamedTuple):
    """What a person sees as one change, and the commands that make it."""

    shown: str
    facts: tuple[Fact, ...]


def apply(intake: Intake, changes: Sequence[Change], at_s: int, source: str) -> dict[str, list[str]]:
    """Journal the commands, then open the periods that can be opened; return those by cluster.

    Args:
        intake: The way into the ledger.
        changes: What is to be booked.
        at_s: When it takes effect.
        source: Who says so, for all of them.
    """
    with reading(intake.engine) as reader:
        sequences = queries.sequences(reader)
    facts = [fact for change in changes for fact in change.facts]
    intake.take([_event(fact, at_s, source, sequences.get(book_of(fact), 0)) for fact in facts])
    with reading(intake.engine) as reader:
        clusters = queries.clusters(reader)
    return intake.open_periods(clusters)


def _event(fact: Fact, at_s: int, source: str, seen_seq: int) -> Event:
    # The id names the content and what it was decided on: the same plan is booked once, and a share that
    # is set to and fro for one moment, or a grant that grows twice by the same amount, is booked each time.
    # It stays in the journal for ever, so that it does not depend on who ordered it.
    body = msgspec.json.encode(impersonal(fact))
    event_id = f"{at_s}/{seen_seq}/{hashlib.sha256(body).hexdigest()[:24]}"
    return make(id=event_id, source=source, at_s=at_s, data=fact)[0]
