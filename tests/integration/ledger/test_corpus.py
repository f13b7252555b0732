"""The frozen corpus of events, appended today, gives the state that it gave when it was frozen."""

import itertools
from pathlib import Path

import pytest
from tests.integration.ledger.books import Ledger

from gpuledger.database.engine import reading, writing
from gpuledger.events.envelope import book_of, decode
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.append import append
from gpuledger.ledger.audit import verify
from gpuledger.ledger.policies import bring_up_to_date
from gpuledger.ledger.rebuild import check, state_digest

BERLIN = Calendar("Europe/Berlin")
"""The zone that the corpus sets."""

FROZEN = "2026-11-29"
DIGESTS = {FROZEN: "307181e048c6b9d1e3f0665032b8c1d28e502c8a15612288f0a48de1b6803a33"}
"""When a corpus was frozen -> the state digest it gave. A new one is added beside the old; none is changed."""


@pytest.mark.parametrize("turn", [1, -1], ids=["in order", "backwards"])
def test_the_corpus_gives_the_state_that_it_gave(ledger: Ledger, repository: Path, turn: int) -> None:
    files = sorted((repository / "tests/contract/events/corpus").glob("*.ndjson"))
    events = [decode(line) for path in files for line in path.read_bytes().splitlines()]
    # Samples stay out of the journal; rate cards are taken over by each book itself.
    told = (e for e in events if e.name not in ("telemetry.sampled", "policy.applied"))
    kept = sorted(told, key=lambda e: book_of(e.data))
    for book, batch in itertools.groupby(kept, key=lambda e: book_of(e.data)):
        with writing(ledger.engine) as writer:
            append(writer, book, list(batch)[::turn], clock=ledger.clock, calendar=BERLIN)
    with writing(ledger.engine) as writer:
        bring_up_to_date(writer, "alpha", clock=ledger.clock, calendar=BERLIN)
    with reading(ledger.engine) as reader:
        assert verify(reader).ok
        assert check(reader, BERLIN).ok
        assert state_digest(reader) == DIGESTS[FROZEN]
