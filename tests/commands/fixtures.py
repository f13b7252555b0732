"""Ledgers that commands work on.

A test folder's conftest, or a module, names what it needs::

    from tests.commands import fixtures

    traces = fixtures.traces

- ``traces``: the three bundled traces, imported once for the whole session; read it, change nothing.
- ``own_home``: a data folder of the test's own, its embedded PostgreSQL not running.
- ``ledger``: an empty ledger of the test's own on the session's PostgreSQL; the quickest to have.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.commands.running import Ran, gpuledger, quick
from tests.commands.traces import ALEX, BUDGET, DATA, PHILLY

from gpuledger.database.embedded import EmbeddedPostgres
from gpuledger.database.engine import make_engine, reading
from gpuledger.ledger.rebuild import state_digest


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where commands find a ledger, and a way to run them on it."""

    settings: Mapping[str, str]
    url: str = ""
    reports: dict[str, Any] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        """The data folder."""
        return Path(self.settings["GPULEDGER_HOME"])

    def __call__(self, *arguments: object, **settings: str) -> Ran:
        """Run ``gpuledger`` on this ledger, quickly."""
        return quick(*arguments, settings={**self.settings, **settings})

    def fresh(self, *arguments: object, **settings: str) -> Ran:
        """Run ``gpuledger`` on this ledger in a process that starts from nothing."""
        return gpuledger(*arguments, settings={**self.settings, **settings})

    def rows(self, sql: str, **values: object) -> list[tuple[Any, ...]]:
        """Look into the database itself."""
        engine = make_engine(self.url)
        try:
            with engine.connect() as connection:
                return [tuple(row) for row in connection.execute(sa.text(sql), values)]
        finally:
            engine.dispose()

    def change(self, sql: str) -> None:
        """Do to the database what only its owner can do."""
        engine = make_engine(self.url)
        try:
            with engine.begin() as connection:
                connection.exec_driver_sql(sql)
        finally:
            engine.dispose()

    def heads(self) -> list[tuple[Any, ...]]:
        """Return rows and head of every book."""
        return self.rows("SELECT book, last_seq, encode(head, 'hex') FROM ledger.books ORDER BY book")

    def digest(self) -> str:
        """Return the state digest."""
        engine = make_engine(self.url)
        try:
            with reading(engine) as reader:
                return state_digest(reader)
        finally:
            engine.dispose()

    def checked_digest(self) -> str:
        """Return the state digest, after making sure that the chain holds and a rebuild comes out the same."""
        verified = self("audit", "verify", "--json")
        assert verified.status == 0, verified.out + verified.err
        assert [(b["book"], b["rows"], b["head"]) for b in verified.json["books"]] == self.heads()
        rebuilt = self("rebuild", "--check", "--json")
        assert rebuilt.status == 0, rebuilt.out + rebuilt.err
        assert rebuilt.json["differences"] == []
        return str(rebuilt.json["state_digest"])

    def done(self, *arguments: object, **settings: str) -> Any:  # noqa: ANN401 - any JSON document
        """Run a command that must succeed; return its JSON document."""
        ran = self(*arguments, "--json", **settings)
        assert ran.status == 0, ran.err
        return ran.json

    def usage(self, by: str, *options: object) -> dict[str, Any]:
        """Return the usage report."""
        document: dict[str, Any] = self.done("usage", "--by", by, *options)
        return document

    def hours(self, by: str, *options: object) -> dict[str, str]:
        """Return GPU-hours by key."""
        return {row["key"]: row["gpu_hours"] for row in self.usage(by, *options)["rows"]}


@contextmanager
def running_home(folder: Path) -> Iterator[Ledger]:
    """Keep a data folder's PostgreSQL running, as the first of its users."""
    with EmbeddedPostgres(folder) as server:
        yield Ledger({"GPULEDGER_HOME": str(folder)}, server.url())


class _Shared:
    """The one imported ledger of a session: every module that imports the fixture makes a fixture of its own."""

    def __init__(self) -> None:
        self._ledger: Ledger | None = None
        self._open = ExitStack()
        self._users = 0

    @contextmanager
    def used(self, folders: pytest.TempPathFactory) -> Iterator[Ledger]:
        self._users += 1
        try:
            if self._ledger is None:
                self._ledger = self._open.enter_context(running_home(folders.mktemp("traces")))
                _fill(self._ledger)
            yield self._ledger
        finally:
            self._users -= 1
            if self._users == 0:
                self._ledger = None
                self._open.close()


_shared = _Shared()


def _fill(ledger: Ledger) -> None:
    """Import everything as the demo does: inventory and shares first, from the beginning of time."""
    ledger.reports["budget"] = ledger.done("budget", "apply", BUDGET, "--from", "0", "--yes")
    for source, path in (("philly", PHILLY), ("clustercockpit", ALEX), ("openb", DATA)):
        began = time.monotonic()
        report = ledger.done("import", source, path)
        ledger.reports[source] = {**report, "seconds": time.monotonic() - began}


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """The bundled traces, imported by the command; nobody changes this ledger."""
    with _shared.used(tmp_path_factory) as ledger:
        yield ledger


@pytest.fixture
def own_home(tmp_path: Path) -> Ledger:
    """A data folder that does not exist yet."""
    return Ledger({"GPULEDGER_HOME": str(tmp_path / "own home")})


@pytest.fixture
def ledger(database_url: str, tmp_path: Path) -> Ledger:
    """An empty ledger on a running PostgreSQL, as an operator would configure it."""
    settings = {"GPULEDGER_HOME": str(tmp_path / "home"), "GPULEDGER_DATABASE_URL": database_url}
    return Ledger(settings, database_url)
