# ruff: noqa: INP001 - infra holds no package; who uses it puts the repository on the path
"""The programs of a Slurm cluster: Debian packages, installed without starting a service."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

PACKAGES = ("slurm-wlm", "slurmdbd", "slurm-client", "munge", "mariadb-server", "libnss-wrapper")
INSTALL = f"apt-get install --no-install-recommends {' '.join(PACKAGES)}"
INSTALL_WAIT_S = 300.0

PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "munged", "mariadbd", "mariadb-install-db", "sacct", "sbatch")
NSS_WRAPPER = "lib*/**/libnss_wrapper.so"

_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
_POLICY = Path("/usr/sbin/policy-rc.d")
_LOCK = Path("/run/gpuledger-packages.lock")
_PATIENT = ("-o", f"DPkg::Lock::Timeout={INSTALL_WAIT_S / 2:.0f}")
"""The system may be installing something of its own just then."""
_REFUSE = "#!/bin/sh\n# No service of a package that is being installed may start.\nexit 101\n"


class SlurmFailed(RuntimeError):  # noqa: N818 - read as a verdict, like the errors of the product
    """The cluster could not be had, started or driven; the message says what to do."""


def search_path() -> str:
    """Return where programs are looked for: daemons stand in folders that not every shell knows."""
    return f"{os.environ.get('PATH', '')}:{_SYSTEM_PATH}"


def program(name: str) -> str:
    """Return where a program is.

    Raises:
        SlurmFailed: When it is not installed.
    """
    found = shutil.which(name, path=search_path())
    if found is None:
        raise SlurmFailed(f"{name} is not installed: {INSTALL}")
    return found


def missing() -> list[str]:
    """Return the programs that are not installed."""
    lacking = [name for name in PROGRAMS if shutil.which(name, path=search_path()) is None]
    return lacking if any(Path("/usr").glob(NSS_WRAPPER)) else [*lacking, "libnss_wrapper.so"]


def ensure() -> None:
    """Install what is missing; the daemons change users and make device files, so that all of it needs root.

    Raises:
        SlurmFailed: When this is not root, there is no apt-get, or the packages cannot be installed.
    """
    if os.geteuid() != 0:
        raise SlurmFailed(
            f"a Slurm cluster starts jobs for several users and needs root: run the tests as root after {INSTALL}"
        )
    with _one_at_a_time():  # programs lie there before their packages are set up
        if not missing():
            return
        apt = shutil.which("apt-get")
        if apt is None:
            raise SlurmFailed(f"{', '.join(missing())} are not installed and there is no apt-get: {INSTALL}")
        with _no_service_starts():
            with contextlib.suppress(SlurmFailed):  # lists that are a day old will do
                _apt([apt, "update", "-qq"])
            _apt([apt, *_PATIENT, "install", "-y", "-qq", "--no-install-recommends", *PACKAGES])
        if left := missing():
            raise SlurmFailed(f"{', '.join(left)} are not there after {INSTALL}")


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Wait for whoever installs: several processes of one test run may come here at once."""
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _no_service_starts() -> Iterator[None]:
    """Refuse to start services while packages are installed, where the system does not refuse already."""
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text(_REFUSE)
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink(missing_ok=True)


def _apt(command: Sequence[str]) -> None:
    with tempfile.TemporaryFile("w+") as output:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=INSTALL_WAIT_S,
                check=False,
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SlurmFailed(f"{' '.join(command[:2])} failed: {error}; by hand: {INSTALL}") from error
        if done.returncode != 0:
            output.seek(0)
            raise SlurmFailed(f"{' '.join(command[:2])} failed:\n{output.read()[-2000:]}\nby hand: {INSTALL}")
