# ruff: noqa: INP001 - infra holds no package; who uses it puts the repository on the path
"""The programs of a Slurm cluster: Debian packages, installed without starting a service."""

import os
import shutil
from pathlib import Path

from infra.debian import NotInstalled, by_hand, search_path
from infra.debian import ensure as ensure_packages

PACKAGES = ("slurm-wlm", "slurmdbd", "slurm-client", "munge", "mariadb-server", "libnss-wrapper")
INSTALL = by_hand(PACKAGES)

PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "munged", "mariadbd", "mariadb-install-db", "sacct", "sbatch")
NSS_WRAPPER = "lib*/**/libnss_wrapper.so"


class SlurmFailed(RuntimeError):  # noqa: N818 - read as a verdict, like the errors of the product
    """The cluster could not be had, started or driven; the message says what to do."""


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
    try:
        ensure_packages(PACKAGES, missing)
    except NotInstalled as error:
        raise SlurmFailed(str(error)) from error
