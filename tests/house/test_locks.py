"""The lock files pin every package by hash and name no index."""

import re
from pathlib import Path

import pytest

LOCKS = ("requirements/run.lock", "requirements/deploy.lock", "requirements/dev.lock")

PIN = re.compile(r"^(?P<name>[a-z0-9][a-z0-9._-]*)==(?P<version>[^ ;\\]+)")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_pinned_by_hash(repository: Path, lock: str) -> None:
    lines = (repository / lock).read_text().splitlines()
    assert [line for line in lines if not PIN.match(line) and not HASH.match(line)] == []
    pins = [index for index, line in enumerate(lines) if PIN.match(line)]
    assert [lines[index] for index in pins if not HASH.match(lines[index + 1])] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_no_lock_names_an_address(repository: Path, lock: str) -> None:
    text = (repository / lock).read_text()
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text


def test_a_run_and_a_test_use_the_same_versions(repository: Path) -> None:
    run, deploy, dev = (_versions(repository / lock) for lock in LOCKS)
    assert run.items() <= dev.items()
    assert deploy.items() <= dev.items()


def test_the_checkout_installs_from_the_run_lock_alone(repository: Path) -> None:
    """``pip install --no-build-isolation -e .`` needs the build backend beside the dependencies."""
    assert {"hatchling", "editables"} <= _versions(repository / "requirements/run.lock").keys()


def test_an_image_has_what_production_needs_and_nothing_of_the_tests(repository: Path) -> None:
    """And it has no compiler: what comes as source alone, such as pyspark, could not be installed there."""
    deploy = _versions(repository / "requirements/deploy.lock").keys()
    assert {"dagster-docker", "dagster-postgres", "great-expectations", "hatchling"} <= deploy
    assert not {"pytest", "accasim", "mypy", "pyspark", "streamlit"} & deploy
    image = (repository / "infra/dagster/containers/Dockerfile").read_text()
    assert "--only-binary :all: --require-hashes --requirement /src/requirements/deploy.lock" in image


def test_there_is_no_other_lock(product_files: list[Path]) -> None:
    others = {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml"}
    assert [path for path in product_files if path.name in others] == []


def _versions(lock: Path) -> dict[str, str]:
    pins = map(PIN.match, lock.read_text().splitlines())
    return {pin["name"]: pin["version"] for pin in pins if pin}
