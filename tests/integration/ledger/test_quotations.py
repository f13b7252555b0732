"""Dead letters and messages that quote a name: found, and emptied once they have done their work."""

import datetime as dt
from dataclasses import replace

import pytest
from tests.integration.ledger.books import NOON, Ledger

from gpuledger.database.engine import reading, writing
from gpuledger.ingest.dead_letters import DeadLetter, LettersQuery, put, resolve, waiting
from gpuledger.ledger import outbox
from gpuledger.ledger.quotations import Quotations, Waiting, erase, find

LETTER = DeadLetter("import/x/alpha", 0, 1, "x.csv:1", "bad", "no date", "mend it", b"1,ada", {"team": "t"})
LATER = NOON + dt.timedelta(hours=1)


def put_letters(ledger: Ledger, *letters: DeadLetter) -> list[int]:
    with writing(ledger.engine) as writer:
        put(writer, letters, NOON)
        return [stored.id for stored in waiting(writer)]


def resolved(ledger: Ledger, *ids: int) -> None:
    with writing(ledger.engine) as writer:
        resolve(writer, ids, NOON)


def looked(ledger: Ledger, name: str = "ada") -> Quotations:
    with reading(ledger.engine) as reader:
        return find(reader, name)


def erased(ledger: Ledger, name: str = "ada") -> Quotations:
    with writing(ledger.engine) as writer:
        found = find(writer, name)
        erase(writer, found)
    return found


QUOTING = {
    "its bytes": replace(LETTER, raw=b"\xff\x00 ada"),
    "escaped bytes": replace(LETTER, raw=rb'{"a":"\nada"}'),
    "its place": replace(LETTER, raw=b"", place="/data/ada/x.csv:1"),
    "its reason": replace(LETTER, raw=b"", reason="no date in 'ada'"),
    "its hint": replace(LETTER, raw=b"", hint="ask ada"),
    "its context": replace(LETTER, raw=b"", context={"team": {"of": ["ada"]}}),
}


@pytest.mark.parametrize("where", QUOTING)
def test_a_letter_quotes_a_name_in(ledger: Ledger, where: str) -> None:
    (id_,) = put_letters(ledger, QUOTING[where])
    assert looked(ledger).waiting == [Waiting(id_, QUOTING[where].place)]
    resolved(ledger, id_)
    assert looked(ledger).ended == [id_]
    erased(ledger)
    assert not looked(ledger).ended


def test_a_name_within_a_word_is_no_quotation(ledger: Ledger) -> None:
    put_letters(ledger, replace(LETTER, raw=b"adam,canada"))
    assert not looked(ledger)


@pytest.mark.parametrize("name", ["", " ", "\n"])
def test_no_name_is_quoted_nowhere(ledger: Ledger, name: str) -> None:
    put_letters(ledger, LETTER)
    assert not looked(ledger, name)


def test_a_name_without_a_plain_letter_is_found(ledger: Ledger) -> None:
    (id_,) = put_letters(ledger, replace(LETTER, raw='{"user":"李"}'.encode()))
    assert looked(ledger, "李").waiting == [Waiting(id_, "x.csv:1")]


def test_a_letter_that_was_read_keeps_when_where_and_what_was_wrong_and_nothing_else(ledger: Ledger) -> None:
    first, second = put_letters(ledger, LETTER, replace(LETTER, position=2, raw=b"2,grace"))
    resolved(ledger, first, second)
    before = ledger.rows("SELECT * FROM ledger.dead_letters WHERE id = :id", id=second)
    digest = ledger.value("SELECT raw_digest FROM ledger.dead_letters WHERE id = :id", id=first)

    erased(ledger)

    assert ledger.rows(
        "SELECT received_at, stream, partition, position, place, code, reason, hint, raw, context, resolved_at"
        " FROM ledger.dead_letters WHERE id = :id", id=first,
    ) == [(NOON, "import/x/alpha", 0, 1, "import/x/alpha[0]@1", "bad", "erased", "", b"", {}, NOON)]  # fmt: skip
    assert ledger.value("SELECT raw_digest FROM ledger.dead_letters WHERE id = :id", id=first) != digest
    assert ledger.rows("SELECT * FROM ledger.dead_letters WHERE id = :id", id=second) == before


def test_letters_of_one_place_can_both_be_emptied(ledger: Ledger) -> None:
    resolved(ledger, *put_letters(ledger, LETTER, replace(LETTER, raw=b"another,ada")))
    assert len(erased(ledger).ended) == 2
    assert ledger.value("SELECT count(*) FROM ledger.dead_letters WHERE raw = ''") == 2


def test_a_letter_that_waits_keeps_all_of_it(ledger: Ledger) -> None:
    """Law 7: it may still be read one day, and nobody else has what it says."""
    put_letters(ledger, LETTER)
    erased(ledger)
    with reading(ledger.engine) as reader:
        (stored,) = waiting(reader)
    assert stored.letter == LETTER


def test_a_letter_that_waited_at_an_earlier_time_is_still_told_of(ledger: Ledger) -> None:
    (id_,) = put_letters(ledger, LETTER)
    with writing(ledger.engine) as writer:
        resolve(writer, [id_], LATER)
    erased(ledger)
    with reading(ledger.engine) as reader:
        (stored,) = waiting(reader, LettersQuery(as_of=NOON))
    assert (stored.id, stored.letter.code, stored.letter.raw) == (id_, "bad", b"")


def test_a_published_message_loses_its_bytes_and_one_that_waits_goes_out_whole(ledger: Ledger) -> None:
    with writing(ledger.engine) as writer:
        for value in (b'{"reason":"ada"}', b'{"reason":"grace"}', b'{"reason":"ada"}'):
            outbox.enqueue(writer, "gpu.dead-letters", "key", value)
        out, other, left = (message.id for message in outbox.waiting(writer, 3))
        outbox.mark_published(writer, [out, other], NOON)
    assert looked(ledger) == Quotations(published=[out], unpublished=[left])

    erased(ledger)

    values = ledger.rows("SELECT id, value FROM ledger.outbox ORDER BY id")
    assert values == [(out, b""), (other, b'{"reason":"grace"}'), (left, b'{"reason":"ada"}')]
