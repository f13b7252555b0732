"""A real Slurm cluster for tests: one for the whole session, started when the first test asks for it.

A test folder's conftest names what it needs::

    from tests.slurm import fixtures

    slurm = fixtures.slurm

- ``slurm``: a running cluster of four nodes with eight GPUs each; mark the test ``slurm``. It needs root, and
  the packages of infra/slurm/packages.py, which are installed when they are missing; otherwise the test fails
  with instructions. See ``tests.slurm.driving.Slurm`` for what can be done with it.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from infra.slurm.cluster import Cluster
from infra.slurm.packages import SlurmFailed
from tests.slurm.driving import Slurm


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    """A running cluster; ``submit``, ``wait``, ``sacct`` and more."""
    with own_folder() as folder:
        cluster = Cluster(folder)
        try:
            cluster.start()
        except SlurmFailed as error:
            pytest.fail(str(error))
        try:
            yield Slurm(cluster)
        finally:
            cluster.stop()


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder for a cluster, gone afterwards."""
    # Not below pytest's own, which nobody else may enter: jobs of other users run in it.
    folder = Path(tempfile.mkdtemp(prefix="gpuledger-slurm-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
