from pathlib import Path

import pytest
from sqlalchemy.exc import ProgrammingError
from tests.integration.pipelines.rows import DAY_S, Database, Facts

from gpuledger import settings
from gpuledger.kernel.errors import Unavailable
from gpuledger_pipelines.resources import Rewriting, Warehouse, calendar


def test_a_database_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    warehouse = Warehouse(url=f"postgresql+psycopg://nobody@/nothing?host={tmp_path}")
    with pytest.raises(Unavailable, match="cannot be used now"), warehouse.writing("usage_hour"):
        pass


def test_what_fails_changes_nothing(database: Database) -> None:
    database.execute("INSERT INTO warehouse.watermark VALUES ('c', 1, now())")
    with (
        pytest.raises(ProgrammingError, match="no_such_table"),
        Warehouse(url=database.url).writing("watermark") as rewriting,
    ):
        _delete_and_fail(rewriting)
    assert database.query("SELECT cluster FROM warehouse.watermark") == [("c",)]


def _delete_and_fail(rewriting: Rewriting) -> None:
    assert rewriting.delete("true", {"cluster": "c"}) == 1
    rewriting.delete("EXISTS (SELECT FROM no_such_table)", {"cluster": "c"})


def test_a_second_writer_of_a_table_waits_and_readers_do_not(database: Database) -> None:
    with Warehouse(url=database.url).writing("usage_hour"):
        assert database.query("SELECT count(*) FROM warehouse.usage_hour") == [(0,)]
        with pytest.raises(Exception, match="lock timeout"):
            database.execute(
                "SET lock_timeout = '50ms'; LOCK TABLE warehouse.usage_hour IN SHARE ROW EXCLUSIVE MODE"
            )


def test_the_zone_is_the_organisations_else_the_settings(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPULEDGER_TIMEZONE", "Europe/Berlin")
    settings.load.cache_clear()
    with database.engine.connect() as connection:
        assert calendar(connection).timezone == "Europe/Berlin"
    database.put(Facts(timezone="Asia/Kolkata"))
    with database.engine.connect() as connection:
        assert calendar(connection).timezone == "Asia/Kolkata"
        assert calendar(connection).day_of(DAY_S - 1).isoformat() == "1970-01-02"
    settings.load.cache_clear()
