"""Dagster's SQLite event log, writing a batch of events in one transaction.

A run over hundreds of days says "materialised" once per asset and day. The stock storage opens three
connections and commits three times for each of these, which takes longer than the roll-up itself. Dagster
hands events over in batches when ``DAGSTER_EVENT_BATCH_SIZE`` is set; this class keeps one connection per
file open for the length of a batch. Files and tables stay those of the stock storage, which can read them.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa
from dagster import EventLogEntry, Field, StringSource
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._serdes import ConfigurableClassData

BATCH_VARIABLE = "DAGSTER_EVENT_BATCH_SIZE"
BATCH_SIZE = "2000"


class BatchingSqliteEventLogStorage(SqliteEventLogStorage):
    """The stock storage, with batches; named in ``dagster.yaml`` as ``event_log_storage``.

    Args:
        base_dir: Folder of the files; the stock storage's place in ``DAGSTER_HOME`` unless given.
        inst_data: What Dagster needs to build the storage anew in another process.
    """

    def __init__(self, base_dir: str | None = None, inst_data: ConfigurableClassData | None = None) -> None:
        self._batch = threading.local()
        self._seen: set[str] = set()
        # Whoever has this storage wants batches; Dagster reads the variable at each event.
        os.environ.setdefault(BATCH_VARIABLE, BATCH_SIZE)
        super().__init__(base_dir or str(Path(os.environ["DAGSTER_HOME"], "history", "runs")), inst_data)

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Say what ``dagster.yaml`` may configure."""
        return {"base_dir": Field(StringSource, is_required=False)}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> Self:  # noqa: ANN401
        """Build the storage from ``dagster.yaml``."""
        return cls(inst_data=inst_data, **config_value)

    def has_table(self, table_name: str) -> bool:
        """Say whether a table exists; asked at every event, and tables do not go away."""
        return table_name in self._seen or (super().has_table(table_name) and self._see(table_name))

    def _see(self, name: str) -> bool:
        self._seen.add(name)
        return True

    def _has_asset_key_col_on_connection(self, conn: sa.Connection, column_name: str) -> bool:
        return column_name in self._seen or (
            super()._has_asset_key_col_on_connection(conn, column_name) and self._see(column_name)
        )

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        """Store the events in order; each file is committed once, when all are in."""
        with ExitStack() as stack:
            self._batch.stack, self._batch.open, self._batch.newest = stack, {}, {}
            try:
                for event in events:
                    self.store_event(event)
                for newest in self._batch.newest.values():
                    super()._store_asset_event(*newest)
            finally:
                # Nothing joins the batch any more; leaving the stack commits or rolls back.
                del self._batch.stack, self._batch.open, self._batch.newest

    def _store_asset_event(self, conn: sa.Connection, event: EventLogEntry, event_id: int) -> None:
        """Note the asset's newest event of each type; of a batch only the last one would remain anyway."""
        newest = getattr(self._batch, "newest", None)
        if newest is None or event.dagster_event is None:
            super()._store_asset_event(conn, event, event_id)
        else:
            newest[event.dagster_event.asset_key, event.dagster_event_type] = (conn, event, event_id)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[sa.Connection]:
        stack: ExitStack | None = getattr(self._batch, "stack", None)
        if stack is None:
            with super()._connect(shard) as connection:
                yield connection
            return
        connections: dict[str, sa.Connection] = self._batch.open
        if shard not in connections:
            connections[shard] = stack.enter_context(self._opened(shard))
        yield connections[shard]

    @contextmanager
    def _opened(self, shard: str) -> Iterator[sa.Connection]:
        # The parent holds its lock while a connection is open. A batch needs two at once, so each
        # connection here is made outside the lock; SQLite's own locks keep writers apart.
        engine = sa.create_engine(
            self.conn_string_for_shard(shard), poolclass=sa.NullPool, connect_args={"timeout": 60}
        )
        if shard not in self._initialized_dbs:
            with super()._connect(shard):
                pass  # makes the file and its tables
        try:
            with engine.begin() as connection:
                yield connection
        finally:
            engine.dispose()
