"""Engines: DuckDB is quick to start, Spark is started once for all tests that use it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.pipelines.rows import Database

from gpuledger_pipelines.archive import engines
from gpuledger_pipelines.archive.engines import Connected


@pytest.fixture
def database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("GPULEDGER_DATABASE_URL", database_url)
    return Database(database_url)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of an archive."""
    return tmp_path / "archive"


@pytest.fixture
def duckdb() -> Iterator[Connected]:
    with engines.duckdb() as connected:
        yield connected


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connected]:
    """Its own files of settings count: here, a Java that compiles little, as it lives for seconds."""
    folder = tmp_path_factory.mktemp("spark")
    (folder / "spark-defaults.conf").write_text(
        "spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC\nspark.gpuledger.tests yes\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(folder))
        with engines.spark("local[2]") as connected:
            yield connected
