"""Dagster's PostgreSQL event log, writing what a run plans in one statement; named in ``infra/dagster/dagster.yaml``.

A run over hundreds of days plans each day of each table. The stock storage writes a batch of materialisations in one
statement, and a batch of plans one by one, in two transactions each: minutes before such a run starts.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import dagster as dg
from dagster import EventLogEntry
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable
from dagster._serdes import ConfigurableClassData
from dagster_postgres.event_log import PostgresEventLogStorage
from dagster_postgres.utils import pg_url_from_config


class BatchingPostgresEventLogStorage(PostgresEventLogStorage):
    """The stock storage, with batches of plans; its tables are those of the stock storage."""

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> Self:
        """Build the storage from ``dagster.yaml``."""
        return cls(
            inst_data=inst_data,
            postgres_url=pg_url_from_config(config_value),
            should_autocreate_tables=config_value.get("should_autocreate_tables", True),
        )

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        """Store the events; planned materialisations first, all in one statement."""
        planned = [event for event in events if _is_plan(event)]
        if planned:
            self._store_plans(planned)
        if others := [event for event in events if not _is_plan(event)]:
            super().store_event_batch(others)

    def _store_plans(self, planned: Sequence[EventLogEntry]) -> None:
        statement = self.prepare_insert_event_batch(planned).returning(SqlEventLogStorageTable.c.id)
        with self._connect() as connection:
            numbers = [int(number) for (number,) in connection.execute(statement)]
        # Of each asset the last event would remain anyway.
        newest = {
            event.get_dagster_event().asset_key: (event, number)
            for event, number in zip(planned, numbers, strict=True)
        }
        with self.index_transaction() as connection:
            for event, number in newest.values():
                self._store_asset_event(connection, event, number)


def _is_plan(event: EventLogEntry) -> bool:
    return event.get_dagster_event().event_type == dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED
