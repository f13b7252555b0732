"""Programs that are not older than the server; passwords stand in no list of processes."""

import sys
from pathlib import Path

import pytest

from gpuledger.backup import programs
from gpuledger.kernel.errors import Refused, Unavailable


def _script(folder: Path, code: str) -> Path:
    path = folder / "pg_dump"
    path.write_text(f"#!{sys.executable}\n{code}\n")
    path.chmod(0o755)
    return path


def test_the_wheel_brings_one_and_an_older_one_will_not_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert programs.program("pg_dump", 18).name == "pg_dump"
    old = _script(tmp_path, "print('pg_dump (PostgreSQL) 15.9 (Debian 15.9-0)')")
    monkeypatch.setattr(programs, "_places", lambda _: [old])
    assert programs.program("pg_dump", 15) == old
    with pytest.raises(Refused, match=r"no pg_dump for PostgreSQL 16: .*pg_dump is of 15") as refused:
        programs.program("pg_dump", 16)
    assert "postgresql-client-16" in refused.value.hint


def test_where_the_database_is_goes_by_the_environment(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    program = _script(
        tmp_path,
        "import os, sys, json\n"
        "told = {name: value for name, value in os.environ.items() if name[:2] == 'PG'}\n"
        f"json.dump([sys.argv[1:], told], open({str(seen)!r}, 'w'))",
    )
    quoted = "s%40cret"
    programs.run(
        program, f"postgresql+psycopg://ada:{quoted}@db.example.org:6543/ledger?sslmode=require", ["-x"]
    )
    text = seen.read_text()
    assert '["-x"]' in text
    for part in (
        '"PGPASSWORD": "s@cret"',
        '"PGHOST": "db.example.org"',
        '"PGPORT": "6543"',
        '"PGSSLMODE": "require"',
    ):
        assert part in text
    programs.run(program, "postgresql+psycopg://postgres@/gpuledger?host=/run/here", [])
    assert '"PGHOST": "/run/here"' in seen.read_text()


def test_what_a_program_says_is_told(tmp_path: Path) -> None:
    program = _script(tmp_path, "import sys; sys.exit('no space left')")
    with pytest.raises(Unavailable, match="pg_dump ended with status 1: no space left"):
        programs.run(program, "postgresql+psycopg://a@b/c", [])
