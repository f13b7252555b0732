"""Servers that commands start: each on a free port, none outlives its parent."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuledger.cli.children import HOST, Children, free_port
from gpuledger.kernel.errors import Unavailable

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
SERVE = [sys.executable, "-m", "http.server", "--bind", HOST]


def test_a_busy_port_means_the_next_one() -> None:
    with socket.socket() as busy:
        busy.bind((HOST, 0))
        busy.listen()
        port = busy.getsockname()[1]
        assert port < free_port(port) < port + 100


def test_no_free_port_at_all_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(Unavailable, match=r"ports 8080 to 8179 of .* are all busy"):
        free_port(8080)


def test_children_end_with_the_block_and_leave_their_logs(tmp_path: Path) -> None:
    with Children(tmp_path / "logs") as children:
        children.start("one", SLEEP, {})
        log = tmp_path / "logs" / "one.log"
        _until(lambda: log.read_text() == "up\n")
        pid = children._running[0][1].pid
        assert children.first_ended() is None
    assert not _alive(pid)


def test_a_child_that_ignores_the_request_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuledger.cli.children.STOP_S", 0.3)
    stubborn = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP[-1]}"
    with Children(tmp_path) as children:
        children.start("stubborn", [sys.executable, "-c", stubborn], {})
        _until(lambda: (tmp_path / "stubborn.log").read_text() == "up\n")
        process = children._running[0][1]
    assert process.returncode == -signal.SIGKILL


def test_one_that_ended_by_itself_is_named(tmp_path: Path) -> None:
    with Children(tmp_path) as children:
        children.start("good", SLEEP, {})
        children.start("bad", [sys.executable, "-c", "pass"], {})
        _until(lambda: children.first_ended() is not None)
        assert children.first_ended() == "bad"


def test_a_server_is_waited_for(tmp_path: Path) -> None:
    port = free_port(18_080)
    with Children(tmp_path) as children:
        children.start("web", [*SERVE, str(port)], {}, cwd=tmp_path)
        children.wait_for("web", f"http://{HOST}:{port}/", 30)


def test_one_that_never_answers_names_its_log(tmp_path: Path) -> None:
    with Children(tmp_path) as children:
        children.start("web", [sys.executable, "-c", "raise SystemExit(1)"], {})
        with pytest.raises(Unavailable, match="web does not answer at http://") as unavailable:
            children.wait_for("web", "http://127.0.0.1:1/", 10)
    assert unavailable.value.hint == f"read {tmp_path / 'web.log'}"


def test_the_environment_is_added_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "1")
    show = "import os; print(os.environ['KEPT'], os.environ['GIVEN'], flush=True)"
    with Children(tmp_path) as children:
        children.start("env", [sys.executable, "-c", show], {"GIVEN": "2"})
        _until(lambda: (tmp_path / "env.log").read_text() == "1 2\n")


def test_a_child_does_not_outlive_a_parent_that_was_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from gpuledger.cli.children import Children\n"
        f"children = Children(Path({str(tmp_path)!r}))\n"
        f"children.start('one', {SLEEP!r}, {{}})\n"
        "print(children._running[0][1].pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert _alive(child)
        parent.kill()
        parent.wait()
    _until(lambda: not _alive(child))


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    os.kill(pid, 0)
    return state != "Z"


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
