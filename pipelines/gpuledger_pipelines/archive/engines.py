"""What the roll-up runs on: DuckDB in this process, or Spark, on this machine or on a cluster.

Both read the files that they are told of and nothing else, as tables without the columns of the layout.
"""

import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from gpuledger.kernel.errors import Refused, Unavailable

if TYPE_CHECKING:
    import pyarrow as pa
    from ibis.backends import BaseBackend
    from ibis.expr.types import Table

JAVA_FLOOR = 17
"""What Spark 4 needs; tests with Apache Kafka need it too."""

APP_NAME = "gpuledger archive"


class Engine(StrEnum):
    """What computes."""

    DUCKDB = "duckdb"
    SPARK = "spark"


class Connected:
    """An engine at work.

    Args:
        name: What it is called.
        read: Makes a table of files.
        compute: Returns what an expression comes to.
    """

    def __init__(
        self,
        name: str,
        read: "Callable[[Sequence[str]], Table]",
        compute: "Callable[[Table], pa.Table]",
    ) -> None:
        self._name, self._read, self._compute = name, read, compute

    def table(self, files: Sequence[Path]) -> "Table":
        """Return the rows of files of one kind.

        Raises:
            Unavailable: When the engine cannot read them; the message is its own.
        """
        with self._telling("read the archive"):
            return self._read([str(file) for file in files])

    def run(self, expression: "Table") -> "pa.Table":
        """Return what an expression comes to.

        Raises:
            Unavailable: When the engine gives up; the message is its own.
        """
        with self._telling("compute the roll-up"):
            return self._compute(expression)

    @contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # an engine's errors have no root of their own
            told = str(error).strip().splitlines() or [type(error).__name__]
            raise Unavailable(
                f"{self._name} cannot {what}: {told[0]}",
                hint="gpuledger archive verify says whether the files are whole",
            ) from error


def connect(engine: Engine, spark_master: str) -> AbstractContextManager[Connected]:
    """Start an engine; it ends with the block.

    Args:
        engine: Which one.
        spark_master: Where Spark computes, as its ``--master`` has it.

    Raises:
        Refused: When it is not installed, or Spark finds no Java.
        Unavailable: When it does not start.
    """
    match engine:
        case Engine.DUCKDB:
            return duckdb()
        case Engine.SPARK:
            return spark(spark_master)
        case _:
            assert_never(engine)


@contextmanager
def duckdb() -> Iterator[Connected]:
    """Compute in this process, on all its cores."""
    try:
        import ibis
    except ImportError as error:
        raise _missing("ibis", "pipelines") from error
    backend = ibis.duckdb.connect()
    try:
        yield Connected(
            "DuckDB", lambda files: backend.read_parquet(files, hive_partitioning=False), backend.to_pyarrow
        )
    finally:
        backend.disconnect()


@contextmanager
def spark(master: str) -> Iterator[Connected]:
    """Compute on Spark; its own files of settings count (``SPARK_CONF_DIR``)."""
    check_java()
    with warnings.catch_warnings():
        # Of pandas, through which no row goes: Spark sends what it computed as Arrow.
        warnings.simplefilter("ignore", FutureWarning)
        session, backend = _started(master)
    try:
        yield Connected(
            "Spark",
            lambda files: _view(session, backend, files),
            lambda expression: session.sql(backend.compile(expression)).toArrow(),
        )
    finally:
        session.stop()


def _started(master: str) -> "tuple[Any, BaseBackend]":
    """Return a session of Spark, and Ibis' connection to it."""
    try:
        import ibis
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise _missing("pyspark", "spark") from error
    builder = SparkSession.builder.master(master).appName(APP_NAME)
    for key, value in spark_settings(master).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        return session, ibis.pyspark.connect(session)
    except (PySparkException, OSError, RuntimeError) as error:
        raise Unavailable(
            f"Spark does not start on {master}: {error}", hint="its messages stand above"
        ) from error


def spark_settings(master: str) -> dict[str, str]:
    """Return what Spark is told besides its own files of settings."""
    told = {
        "spark.sql.ansi.enabled": "true",  # a sum that overflows is an error and no number
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        told |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "4",
        }
    return told


def check_java() -> str:
    """Return the Java that Spark will start.

    Raises:
        Refused: When there is none, or only one that is too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    hint = f"install Java {JAVA_FLOOR}, or set JAVA_HOME; --engine duckdb needs none"
    if not java or not Path(java).exists():
        raise Refused(f"Spark needs Java {JAVA_FLOOR} or later, and there is none", hint=hint)
    told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    version = re.search(r'version "(\d+)', told)
    if version is None or int(version[1]) < JAVA_FLOOR:
        raise Refused(f"Spark needs Java {JAVA_FLOOR} or later, and {java} is older", hint=hint)
    return java


def _view(session: Any, backend: "BaseBackend", files: Sequence[str]) -> "Table":  # noqa: ANN401 - Spark has no types
    import ibis

    name = ibis.util.gen_name("archive")
    session.read.parquet(*files).createOrReplaceTempView(name)
    return backend.table(name)


def _missing(package: str, extra: str) -> Refused:
    return Refused(f"{package} is not installed", hint=f"pip install 'gpuledger[{extra}]'")
