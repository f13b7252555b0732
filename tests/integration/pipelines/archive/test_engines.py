"""Engines that are not there, or give up, say so in one sentence, with what to do."""

from pathlib import Path

import pytest

from gpuledger.kernel.errors import Refused, Unavailable
from gpuledger_pipelines.archive import engines
from gpuledger_pipelines.archive.engines import Connected, Engine, check_java, connect, spark_settings


def java(folder: Path, version: str) -> Path:
    """A Java that says which it is."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    program.chmod(0o755)
    return folder


def test_java_is_that_of_java_home_and_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "new", "17.0.1")))
    assert check_java() == str(tmp_path / "new/bin/java")
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "old", "11.0.9")))
    with pytest.raises(Refused, match="old/bin/java is older"):
        check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    with pytest.raises(Refused, match="there is none") as told:
        check_java()
    assert "--engine duckdb needs none" in told.value.hint
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "new/bin"))
    assert check_java() == str(tmp_path / "new/bin/java")


@pytest.mark.parametrize(
    ("engine", "package", "extra"),
    [(Engine.DUCKDB, "ibis", "pipelines"), (Engine.SPARK, "pyspark.sql", "spark")],
)
def test_what_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, engine: Engine, package: str, extra: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(Refused, match="is not installed") as told, connect(engine, "local[1]"):
        pytest.fail("it started")
    assert told.value.hint == f"pip install 'gpuledger[{extra}]'"


def test_a_cluster_keeps_its_own_settings() -> None:
    here, elsewhere = spark_settings("local[2]"), spark_settings("spark://head:7077")
    assert here["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in elsewhere
    assert "spark.sql.shuffle.partitions" not in elsewhere
    assert here["spark.sql.ansi.enabled"] == elsewhere["spark.sql.ansi.enabled"] == "true"


def test_files_of_settings_count(spark: Connected) -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    assert session is not None
    assert session.conf.get("spark.gpuledger.tests") == "yes"
    assert session.conf.get("spark.sql.session.timeZone") == "UTC"


def test_a_broken_file_stops_either_engine(spark: Connected, duckdb: Connected, tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    path.write_bytes(b"no Parquet")
    for engine in (duckdb, spark):
        with pytest.raises(Unavailable, match="cannot") as told:
            engine.run(engine.table([path]))
        assert "gpuledger archive verify" in told.value.hint


def test_an_engine_has_a_name_for_people() -> None:
    assert [each.value for each in engines.Engine] == ["duckdb", "spark"]
