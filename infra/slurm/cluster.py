# ruff: noqa: INP001 - infra holds no package; who uses it puts the repository on the path
"""A real Slurm cluster on this machine's loopback: MariaDB, slurmdbd, slurmctld and nodes with GPUs of paper.

Everything it writes lies in one folder, and nothing of it outlives ``stop``: no daemon, no step, no job.
Users need no entry in the system's files: ``libnss_wrapper`` tells the daemons and clients of them.
"""

import contextlib
import os
import shutil
import signal
import stat
import string
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Self

from infra.kafka.processes import birth_of, free_port, tie_to
from infra.slurm.packages import SlurmFailed, ensure, program, search_path

HERE = Path(__file__).resolve().parent
CLUSTER = "ai2test"
USERS: Mapping[str, int] = {"alice": 5001, "bob": 5002}
"""Who may submit, and their user ids: alice in proj-a1 and proj-a2, bob in proj-b1 (accounts.cfg)."""

START_WAIT_S = 90.0
STOP_WAIT_S = 15.0
CALL_WAIT_S = 60.0
LAST_WORDS = 800
"""Characters of each log that a failure shows."""

GPU_DEVICE = os.makedev(1, 3)
"""What stands for a GPU: a character device, as slurmd wants one, that swallows everything."""

_NODE = "GPULEDGER_SLURM_NODE"
"""Names the node in the environment of its slurmd and of the steps that this starts."""

_QOS = """\
add qos low priority=0 preemptmode=requeue
add qos high priority=100
modify qos normal set priority=10 preemptmode=requeue
modify qos high set preempt=low,normal
"""


class Cluster:
    """A Slurm cluster with its configuration, its database and its logs in a folder.

    Args:
        folder: Where it lives: reachable for every user, and with a short path, for sockets are made in it.
        nodes: How many nodes: ``node1`` and on.
        gpus: GPUs (of type h100) of each.
    """

    def __init__(self, folder: Path, *, nodes: int = 4, gpus: int = 8) -> None:
        self.folder = folder.resolve()
        self.gpus = gpus
        self.nodes = [f"node{number}" for number in range(1, nodes + 1)]
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def configuration(self) -> Path:
        """The file that SLURM_CONF names."""
        return self.folder / "etc" / "slurm.conf"

    @property
    def log(self) -> Path:
        """The folder of the daemons' logs."""
        return self.folder / "log"

    @property
    def work(self) -> Path:
        """A folder that every user may write to; jobs run in it."""
        return self.folder / "work"

    @property
    def environment(self) -> Mapping[str, str]:
        """What every client of the cluster needs in its environment."""
        etc = self.folder / "etc"
        return {
            "PATH": search_path(),
            "SLURM_CONF": str(self.configuration),
            "LD_PRELOAD": "libnss_wrapper.so",
            "NSS_WRAPPER_PASSWD": str(etc / "passwd"),
            "NSS_WRAPPER_GROUP": str(etc / "group"),
            # Daemons bind to what the name of their machine resolves to: here it is the loopback.
            "NSS_WRAPPER_HOSTS": str(etc / "hosts"),
            "NSS_WRAPPER_HOSTNAME": "localhost",
            "MYSQL_UNIX_PORT": str(self._run / "mysql.sock"),
        }

    def start(self) -> None:
        """Start all daemons and wait until every node takes jobs.

        Raises:
            SlurmFailed: When this is not root, the packages cannot be had, or a daemon does not answer.
        """
        ensure()
        try:
            self._configure()
            self._start_database()
            self._start_accounting()
            self._spawn("slurmctld", "slurmctld", "-D", "-i")
            for node in self.nodes:
                self.start_node(node)
            self.until(lambda: "UP" in self.ask("scontrol", "ping"), "slurmctld")
            self.until(lambda: not self.down_nodes(), "nodes")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the daemons, then whatever else still runs for this cluster."""
        for name in reversed(list(self._daemons)):
            self._end(name, signal.SIGTERM)
        self._kill(lambda _: True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ask(
        self, *command: str, user: str = "root", stdin: str | None = None, wait_s: float = CALL_WAIT_S
    ) -> str:
        """Run a client of Slurm as a user and return what it printed.

        Raises:
            SlurmFailed: When it fails or takes too long.
        """
        who = {} if user == "root" else {"user": USERS[user], "group": USERS[user], "extra_groups": []}
        try:
            done = subprocess.run(
                [program(command[0]), *command[1:]],
                input=stdin or "",
                capture_output=True,
                text=True,
                timeout=wait_s,
                check=False,
                cwd=self.work,
                env={**os.environ, **self.environment, "TZ": "UTC"},
                **who,  # type: ignore[call-overload]
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SlurmFailed(f"{command[0]} failed: {error}") from error
        if done.returncode != 0:
            raise SlurmFailed(f"{' '.join(command)} failed: {(done.stderr or done.stdout).strip()[-2000:]}")
        return str(done.stdout)

    def until(self, condition: Callable[[], bool], what: str, wait_s: float = START_WAIT_S) -> None:
        """Wait until something is so; a client that fails meanwhile is asked again.

        Raises:
            SlurmFailed: When it is not so in time, or a daemon has ended; shows the last lines of all logs.
        """
        deadline = time.monotonic() + wait_s
        failed = ""
        while not (ended := self._ended()) and time.monotonic() < deadline:
            try:
                if condition():
                    return
            except SlurmFailed as error:
                failed = str(error)
            time.sleep(0.1)
        why = f"{ended} ended by itself" if ended else f"not so within {wait_s:.0f} s; {failed}"
        raise SlurmFailed(f"{what}: {why}\n{self._last_words()}")

    def down_nodes(self) -> list[str]:
        """Return the nodes that take no jobs."""
        printed = self.ask("sinfo", "-h", "-N", "-t", "idle,mix,alloc", "-o", "%N")
        return sorted(set(self.nodes) - set(printed.split()))

    def start_node(self, node: str) -> None:
        """Start the slurmd of a node."""
        (self.folder / "spool" / node).mkdir(parents=True, exist_ok=True)
        self._spawn(node, "slurmd", "-D", "-N", node, marks={_NODE: node})

    def kill_node(self, node: str) -> None:
        """Kill the slurmd of a node, the steps it started and their jobs, as if the power failed."""
        self._end(node, signal.SIGKILL)
        self._kill(lambda env: env.get(_NODE) == node or env.get("SLURMD_NODENAME") == node)

    @property
    def _run(self) -> Path:
        return self.folder / "run"

    def _configure(self) -> None:
        for name in ("etc", "run", "log", "state", "spool", "dev", "work"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        for shared in (self.work, self._run):  # munged wants the sticky bit where others may write
            shared.chmod(0o1777)
        values = {
            "cluster": CLUSTER,
            "folder": self.folder,
            "run": self._run,
            "log": self.log,
            "gpus": self.gpus,
            "last_gpu": self.gpus - 1,
            "slurmctld_port": free_port(),
            "slurmdbd_port": free_port(),
            "node_names": ",".join(self.nodes),
            "nodes": "\n".join(
                f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={free_port()}"
                for node in self.nodes
            ),
        }
        etc = self.folder / "etc"
        for name in ("slurm.conf", "slurmdbd.conf", "gres.conf", "accounts.cfg"):
            # %-signs are Slurm's own, dollars are ours.
            written = string.Template((HERE / name).read_text()).substitute(values)
            (etc / name).write_text(written)
        (etc / "slurmdbd.conf").chmod(0o600)
        (etc / "hosts").write_text("127.0.0.1 localhost\n")
        (etc / "passwd").write_text(
            Path("/etc/passwd").read_text()
            + "".join(f"{name}:x:{uid}:{uid}::{self.work}:/bin/sh\n" for name, uid in USERS.items())
        )
        (etc / "group").write_text(
            Path("/etc/group").read_text() + "".join(f"{name}:x:{gid}:\n" for name, gid in USERS.items())
        )
        key = etc / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        for number in range(self.gpus):
            self._make_gpu(self.folder / "dev" / f"gpu{number}")

    def _make_gpu(self, path: Path) -> None:
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, GPU_DEVICE)
        except PermissionError:  # a container may forbid it; slurmd takes a file too, and grumbles
            path.touch()

    def _start_database(self) -> None:
        run, etc, data = self._run, self.folder / "etc", self.folder / "db"
        self._spawn(
            "munged", "munged", "-F", f"--key-file={etc / 'munge.key'}", f"--socket={run / 'munge.socket'}",
            f"--pid-file={run / 'munged.pid'}", f"--log-file={self.log / 'munged.log'}",
            f"--seed-file={run / 'munged.seed'}", "--num-threads=2",
        )  # fmt: skip
        data.mkdir()
        shutil.chown(data, "mysql", "mysql")
        with (self.log / "mariadb-install-db.out").open("wb") as output:
            made = subprocess.run(
                [
                    program("mariadb-install-db"), "--no-defaults", f"--datadir={data}", "--user=mysql",
                    "--auth-root-authentication-method=socket", "--skip-test-db", "--skip-name-resolve",
                ],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, timeout=START_WAIT_S, check=False,
                env={**os.environ, "TMPDIR": str(data)},  # whose folder TMPDIR names may not let mysql write
            )  # fmt: skip
        if made.returncode != 0:
            raise SlurmFailed(f"mariadb-install-db failed: {Path(output.name).read_text()[-2000:]}")
        socket = run / "mysql.sock"
        self._spawn(
            "mariadbd", "mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={socket}", f"--tmpdir={data}",
            f"--pid-file={run / 'mysql.pid'}", "--skip-networking", "--innodb-buffer-pool-size=128M",
            "--innodb-log-file-size=64M", "--innodb-lock-wait-timeout=900", "--innodb-flush-log-at-trx-commit=0",
            user="mysql",
        )  # fmt: skip
        self.until(socket.exists, "mariadbd")

    def _start_accounting(self) -> None:
        socket = str(self._run / "munge.socket")
        self.until(lambda: self.ask("munge", "-n", "-S", socket, wait_s=5) != "", "munged")
        self._spawn("slurmdbd", "slurmdbd", "-D")
        self.until(lambda: "normal" in self.ask("sacctmgr", "-nP", "list", "qos", wait_s=5), "slurmdbd")
        self.ask("sacctmgr", "-i", "-Q", stdin=_QOS)
        self.ask("sacctmgr", "-i", "-Q", "load", f"file={self.folder / 'etc' / 'accounts.cfg'}")

    def _spawn(
        self,
        name: str,
        command: str,
        *arguments: str,
        marks: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> None:
        with (self.log / f"{name}.out").open("ab") as output:
            self._daemons[name] = subprocess.Popen(
                [program(command), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment, **(marks or {}), "TZ": "UTC"},
                user=user,
                group=user,
                extra_groups=None if user is None else [],
                start_new_session=True,  # Ctrl-C in the terminal is for the owner, who stops it in order
                preexec_fn=tie_to(os.getpid(), signal.SIGKILL),  # noqa: PLW1509
            )

    def _end(self, name: str, how: signal.Signals) -> None:
        process = self._daemons.pop(name, None)
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_WAIT_S)

    def _kill(self, chosen: Callable[[Mapping[str, str]], bool]) -> None:
        """Kill the steps and jobs of this cluster whose environment is chosen, and wait until they are gone."""
        victims = [pid for pid, env in self._processes() if chosen(env)]
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + STOP_WAIT_S
        while any(birth_of(pid) for pid in victims) and time.monotonic() < deadline:
            time.sleep(0.02)

    def _processes(self) -> Iterator[tuple[int, Mapping[str, str]]]:
        """Yield every process that was started with this cluster's configuration, this one apart."""
        for path in Path("/proc").glob("[0-9]*/environ"):
            pid = int(path.parent.name)
            try:
                pairs = path.read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue  # it has ended, or is the kernel's
            env = {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
            if pid != os.getpid() and env.get("SLURM_CONF") == str(self.configuration):
                yield pid, env

    def _ended(self) -> str:
        """Return the first daemon that has ended although nobody stopped it; nothing when all run."""
        return next((name for name, process in self._daemons.items() if process.poll() is not None), "")

    def _last_words(self) -> str:
        texts = ((path, path.read_text(errors="replace")) for path in sorted(self.log.glob("*")))
        return "\n".join(f"{path}:\n{text[-LAST_WORDS:]}" for path, text in texts)
