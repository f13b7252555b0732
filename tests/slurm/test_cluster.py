"""Nothing of a cluster outlives it, and where it cannot be had the message says what to do."""

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from infra import debian
from infra.slurm import packages
from infra.slurm.cluster import Cluster
from infra.slurm.packages import SlurmFailed
from tests.slurm.driving import Slurm


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="gpuledger-slurm-", dir="/tmp"))
    yield made
    shutil.rmtree(made)


@pytest.mark.slurm
def test_when_it_stops_neither_daemons_nor_jobs_are_left(folder: Path) -> None:
    with Cluster(folder, nodes=1, gpus=2) as cluster:
        slurm = Slurm(cluster)
        job = slurm.submit("long", "--gres=gpu:1", "--mem=1G", script="sleep 300")
        slurm.wait(job, "RUNNING")
        everything = {"slurmctld", "slurmd", "slurmdbd", "mariadbd", "munged", "sleep"}
        cluster.until(lambda: _of(cluster) > everything, "the job's own process", 60)

    assert _of(cluster) == set()


@pytest.mark.slurm
def test_a_daemon_that_ends_at_once_shows_why(folder: Path) -> None:
    with pytest.raises(SlurmFailed, match=r"(?s)munged ended by itself.*munged\.out:.*Keyfile is insecure"):
        _Careless(folder, nodes=1).start()


class _Careless(Cluster):
    def _configure(self) -> None:
        super()._configure()
        (self.folder / "etc" / "munge.key").chmod(0o666)


def test_without_root_it_says_who_must_run_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(SlurmFailed, match="needs root: run the tests as root after apt-get install"):
        packages.ensure()


def test_without_apt_it_names_the_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(debian, "_LOCK", tmp_path / "lock")
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)

    with pytest.raises(SlurmFailed, match=r"no apt-get: apt-get install .*slurm-wlm slurmdbd"):
        packages.ensure()
    with pytest.raises(SlurmFailed, match="sacct is not installed: apt-get install"):
        packages.program("sacct")


def test_services_are_refused_only_while_packages_are_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    policy = tmp_path / "policy-rc.d"
    seen = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(debian, "_POLICY", policy)
    lacking = iter((["slurmd"], []))
    monkeypatch.setattr(packages, "missing", lambda: next(lacking))
    monkeypatch.setattr(shutil, "which", lambda name, path=None: f"/usr/bin/{name}")
    monkeypatch.setattr(
        debian,
        "_apt",
        lambda command, _: seen.extend(
            (word, policy.stat().st_mode & 0o777) for word in command if word in ("update", "install")
        ),
    )
    monkeypatch.setattr(debian, "_LOCK", tmp_path / "lock")

    packages.ensure()

    assert seen == [("update", 0o755), ("install", 0o755)]
    assert not policy.exists()


def test_who_comes_while_packages_are_installed_waits_and_installs_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed, meanwhile, begun = threading.Event(), list[str](), threading.Event()

    def apt(command: Sequence[str], _: str) -> None:
        meanwhile.append(command[-1])
        begun.set()
        time.sleep(0.2)
        if "install" in command:
            installed.set()

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(debian, "_POLICY", tmp_path / "policy-rc.d")
    monkeypatch.setattr(debian, "_LOCK", tmp_path / "lock")
    monkeypatch.setattr(packages, "missing", lambda: [] if installed.is_set() else ["slurmd"])
    monkeypatch.setattr(shutil, "which", lambda name, path=None: f"/usr/bin/{name}")
    monkeypatch.setattr(debian, "_apt", apt)
    first = threading.Thread(target=packages.ensure)
    first.start()
    begun.wait(10)
    packages.ensure()
    first.join()
    assert meanwhile == ["-qq", packages.PACKAGES[-1]]


def _of(cluster: Cluster) -> set[str]:
    """Return the programs that run with this cluster's configuration."""
    found = set()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if str(cluster.configuration).encode() in environ.read_bytes():
                found.add((environ.parent / "comm").read_text().strip())
        except OSError:
            continue  # it ended, or is not ours to look at
    return found
