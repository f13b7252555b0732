"""What comes back is all that was there, proven row by row; what does not hold is named."""

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.integration.backup.conftest import NOVEMBER
from tests.integration.ledger.books import HOUR, Ledger, run_of

from gpuledger.backup import restoring
from gpuledger.backup.restoring import restore
from gpuledger.backup.taking import take
from gpuledger.database.engine import make_engine, reading
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import rebuild


def test_a_ledger_comes_back_and_goes_on(lived: Ledger, empty: Callable[[], str], tmp_path: Path) -> None:
    backup = tmp_path / "ledger.dump"
    take(lived.engine, backup, lived.clock)
    steps: list[str] = []
    url = empty()
    found = restore(url, backup, steps.append)
    assert (found.ok, found.differences, found.audit.faults) == (True, [], ())
    assert steps == ["check the backup", "make the roles", "read the dump", "verify every row"]
    assert found.as_json()["books"] == [
        {"book": book, "rows": rows, "head": head}
        for book, rows, head in lived.rows(
            "SELECT book, last_seq, encode(head, 'hex') FROM ledger.books ORDER BY 1"
        )
    ]
    again = Ledger(url)
    with reading(lived.engine) as one, reading(again.engine) as other:
        assert rebuild.state_digest(one) == rebuild.state_digest(other)
    for each in (lived, again):  # the same next row is chained to the same head
        each.append(*run_of(NOVEMBER + 6 * HOUR, NOVEMBER + 7 * HOUR, "next"))
    heads = "SELECT book, last_seq, head FROM ledger.books ORDER BY book"
    assert lived.rows(heads) == again.rows(heads)
    again.engine.dispose()


def test_a_database_that_holds_a_ledger_is_left_alone(lived: Ledger, tmp_path: Path) -> None:
    backup = tmp_path / "ledger.dump"
    take(lived.engine, backup, lived.clock)
    with pytest.raises(Refused, match=r"holds schemas of a ledger: identity, ledger, ledger_read"):
        restore(lived.url, backup)


def test_what_was_changed_on_the_way_is_found(
    lived: Ledger, empty: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = tmp_path / "ledger.dump"
    take(lived.engine, backup, lived.clock)
    run = restoring.run

    def tampered(program: Path, url: str, arguments: list[str]) -> None:
        run(program, url, arguments)
        engine = make_engine(url)
        with engine.begin() as connection:
            for statement in (
                "ALTER TABLE ledger.journal DISABLE TRIGGER ALL",
                "UPDATE ledger.journal SET source = 'nobody' WHERE book = 'alpha' AND seq = 2",
                "UPDATE ledger.books SET last_seq = last_seq - 1 WHERE book = '~org'",
            ):
                connection.execute(sa.text(statement))
        engine.dispose()

    monkeypatch.setattr(restoring, "run", tampered)
    found = restore(empty(), backup)
    assert not found.ok
    assert [each.book for each in found.differences] == ["~org"]
    assert any("journal" in fault for fault in found.audit.faults)
    bad = {book.book: book.first_bad for book in found.audit.books if book.first_bad is not None}
    assert "alpha" in bad
