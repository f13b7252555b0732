"""What the warehouse holds of a close is what its book says, and comes back as it was written."""

import pytest
from tests.integration.close.closing import NOVEMBER, Books
from tests.integration.ledger.books import CLUSTER

from gpuledger.close import store
from gpuledger.close.store import Place
from gpuledger.database.engine import reading, writing

PLACE = Place(CLUSTER, NOVEMBER, 1)


def test_lines_come_back_as_they_are_and_another_version_stays(books: Books) -> None:
    books.close()
    said = books.made().document
    with writing(books.ledger.engine) as writer:
        store.write_statement(writer, PLACE._replace(version=7), said)
        store.write_statement(writer, PLACE, said)
    with reading(books.ledger.engine) as reader:
        assert list(store.iter_lines(reader, PLACE)) == [store.flat(line) for line in said.accounts]
        assert len(list(store.iter_lines(reader, PLACE._replace(version=7)))) == len(said.accounts)
        assert list(store.iter_lines(reader, PLACE._replace(cluster="beta"))) == []


def test_a_note_keeps_what_it_does_not_name(books: Books) -> None:
    books.close()
    before = books.stored()
    with writing(books.ledger.engine) as writer:
        store.note(writer, PLACE, "sealed", checks=9)
    assert books.stored() == {**before, "state": "sealed", "checks": 9}


def test_what_is_not_there_is_none(books: Books) -> None:
    with reading(books.ledger.engine) as reader:
        assert store.find(reader, PLACE) is None
    books.close()
    with reading(books.ledger.engine) as reader:
        found = store.find(reader, PLACE)
    assert found is not None
    assert found.document is not None
    assert found.document.encode() == books.made().content


def test_a_close_without_a_frozen_state_has_no_row(books: Books) -> None:
    from tests.integration.ledger.books import told

    from gpuledger.events.closing import PeriodClosing

    books.ledger.append(told(0, PeriodClosing(cluster=CLUSTER, period=NOVEMBER, version=1, by="ada")))
    with writing(books.ledger.engine) as writer, pytest.raises(ValueError, match="frozen"):
        store.note(writer, PLACE, "frozen")
