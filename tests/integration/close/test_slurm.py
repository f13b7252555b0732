"""A period is compared with Slurm's accounting from its first instant on, from a file or as sacct prints it now."""

from pathlib import Path

import pytest
from tests.accounting import document, job
from tests.collecting import Bin
from tests.integration.close.closing import TENTH, Books
from tests.integration.ledger.books import HOUR

from gpuledger.close.slurm import comparing
from gpuledger.close.steps import Stopped
from gpuledger.kernel.errors import Refused
from gpuledger.reconcile.comparison import Class


def test_what_the_record_has_and_the_ledger_has_not_stops_a_close(books: Books, tmp_path: Path) -> None:
    path = tmp_path / "sacct.json"
    path.write_text(document([job(1, TENTH, TENTH + HOUR)]))
    compare = comparing(books.closer(), path, tmp_path)
    (difference,) = [d for d in compare().found if d.klass is Class.LOST]
    assert difference.record_gpu_ms > 0
    with pytest.raises(Stopped):
        books.close(compare=compare)
    outcome = books.close(compare=compare, accept=True)
    assert outcome.rows.reconciled is not None
    assert outcome.rows.reconciled.unexplained == 1


def test_a_file_that_is_not_there_is_refused_before_anything_is_done(books: Books, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"--record: .* does not exist"):
        comparing(books.closer(), tmp_path / "none.json", tmp_path)


def test_sacct_is_asked_from_the_periods_first_day_on(
    books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Bin(tmp_path / "bin", monkeypatch)
    (tmp_path / "none.json").write_text(document([]))
    commands.put("sacct", f'echo "$@" >>{tmp_path}/calls; cat {tmp_path}/none.json')
    found = comparing(books.closer(), None, tmp_path / "answers")()
    calls = (tmp_path / "calls").read_text().splitlines()
    assert "-S 2026-11-01T00:00:00" in calls[0]
    assert len(calls) == 31, "a day at a time, up to now"
    assert found.found == [], "no run of this ledger was told by Slurm"
