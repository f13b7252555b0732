# ruff: noqa: INP001 - infra holds no package; who uses it puts the repository on the path
"""Debian packages, installed without starting a service: what tests need that no wheel brings."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

INSTALL_WAIT_S = 300.0

_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
_POLICY = Path("/usr/sbin/policy-rc.d")
_LOCK = Path("/run/gpuledger-packages.lock")
_PATIENT = ("-o", f"DPkg::Lock::Timeout={INSTALL_WAIT_S / 2:.0f}")
"""The system may be installing something of its own just then."""
_REFUSE = "#!/bin/sh\n# No service of a package that is being installed may start.\nexit 101\n"


class NotInstalled(RuntimeError):  # noqa: N818 - read as a verdict, like the errors of the product
    """A program is not there and cannot be had; the message says what to type."""


def by_hand(packages: Sequence[str]) -> str:
    """Return the line that installs packages."""
    return f"apt-get install --no-install-recommends {' '.join(packages)}"


def search_path() -> str:
    """Return where programs are looked for: daemons stand in folders that not every shell knows."""
    return f"{os.environ.get('PATH', '')}:{_SYSTEM_PATH}"


def ensure(packages: Sequence[str], missing: Callable[[], list[str]]) -> None:
    """Install packages where something of them is missing.

    Args:
        packages: Their names.
        missing: Returns what is not there, such as programs.

    Raises:
        NotInstalled: When something is missing and this is not root, there is no apt-get, or it cannot install them.
    """
    hand = by_hand(packages)
    if os.geteuid() != 0:
        if left := missing():
            raise NotInstalled(f"{', '.join(left)} are not installed, and installing needs root: {hand}")
        return
    with _one_at_a_time():  # programs lie there before their packages are set up
        lacking = missing()
        if not lacking:
            return
        apt = shutil.which("apt-get")
        if apt is None:
            raise NotInstalled(f"{', '.join(lacking)} are not installed and there is no apt-get: {hand}")
        with _no_service_starts():
            with contextlib.suppress(NotInstalled):  # lists that are a day old will do
                _apt([apt, "update", "-qq"], hand)
            _apt([apt, *_PATIENT, "install", "-y", "-qq", "--no-install-recommends", *packages], hand)
        if left := missing():
            raise NotInstalled(f"{', '.join(left)} are not there after {hand}")


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


def _apt(command: Sequence[str], hand: str) -> None:
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
            raise NotInstalled(f"{' '.join(command[:2])} failed: {error}; by hand: {hand}") from error
        if done.returncode != 0:
            output.seek(0)
            raise NotInstalled(f"{' '.join(command[:2])} failed:\n{output.read()[-2000:]}\nby hand: {hand}")
