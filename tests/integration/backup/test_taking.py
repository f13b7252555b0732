"""A backup is of one moment, whole or not there, and overwrites nothing."""

import stat
from pathlib import Path

import pytest
from tests.integration.backup.conftest import NOVEMBER
from tests.integration.ledger.books import HOUR, Ledger, run_of

from gpuledger.backup import manifest, taking
from gpuledger.backup.programs import run
from gpuledger.kernel.errors import Refused, Unavailable


def test_heads_and_dump_are_of_one_snapshot_while_others_write(
    lived: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_a_writer(*arguments: object) -> None:
        lived.append(*run_of(NOVEMBER + 6 * HOUR, NOVEMBER + 7 * HOUR, "later"))
        run(*arguments)  # type: ignore[arg-type]

    before = dict(lived.rows("SELECT book, encode(head, 'hex') FROM ledger.books"))
    monkeypatch.setattr(taking, "run", with_a_writer)
    told = taking.take(lived.engine, tmp_path / "ledger.dump", lived.clock)
    assert {each.book: each.head for each in told.heads} == before
    assert manifest.read(tmp_path / "ledger.dump") == told
    assert stat.S_IMODE((tmp_path / "ledger.dump").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.dump", "ledger.dump.json"]


def test_nothing_is_overwritten_and_nothing_half_done_is_left(
    lived: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.json").write_text("mine")
    with pytest.raises(Refused, match=r"old\.json is there already"):
        taking.take(lived.engine, tmp_path / "old", lived.clock)
    with pytest.raises(Refused, match="is no folder"):
        taking.take(lived.engine, tmp_path / "gone" / "x", lived.clock)

    def fails(*_: object) -> None:
        (tmp_path / ".new.part").write_text("half")
        raise Unavailable("no space left")

    monkeypatch.setattr(taking, "run", fails)
    with pytest.raises(Unavailable):
        taking.take(lived.engine, tmp_path / "new", lived.clock)
    assert [path.name for path in tmp_path.iterdir()] == ["old.json"]


def test_a_schema_of_another_version_is_refused(lived: Ledger, tmp_path: Path) -> None:
    lived.change("UPDATE public.alembic_version SET version_num = '0001'")
    with pytest.raises(Refused, match="the schema is at 0001"):
        taking.take(lived.engine, tmp_path / "x", lived.clock)
