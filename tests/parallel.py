"""Two workers share a test run (pytest-xdist): what is dear is made once, and what is measured runs alone.

A broker, imported traces, seeded pages: each takes longer to make than the tests that use it, so all its tests go to
one worker. A bench gates on a ratio, and must not lose half of the machine in the middle of it.
"""

import fcntl
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

TOGETHER = {
    "broker": {
        "kafka_bootstrap",
        "apache_kafka",
        "traces",
    },  # traces go through a broker in some of their tests
    "slurm": {"slurm", "enforced"},  # two clusters at once would take each other's time
    "pages": {"seeded_url"},
    "api": {"seeded"},
    "ledger": {"ledger_database"},
    "spark": {"spark"},  # a Java of its own, which takes seconds to start and half a gigabyte
}
"""A group -> fixtures that are dear; a test belongs to the first group of which it uses one."""


def group_of(fixtures: Sequence[str], *, is_measured: bool) -> str | None:
    """Return which tests a test must share its worker with, or None."""
    if is_measured:
        return "bench"
    return next((group for group, dear in TOGETHER.items() if dear.intersection(fixtures)), None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test that must share a worker."""
    for item in items:
        names: Sequence[str] = getattr(item, "fixturenames", ())
        group = group_of(names, is_measured=_is_measured(item))
        if group is not None:
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a bench while no other test runs; does nothing when there is one worker."""
    if not hasattr(item.config, "workerinput") or item.config.cache is None:
        return (yield)
    folder = item.config.cache.mkdir("parallel")
    with turn(folder, alone=_is_measured(item)):
        return (yield)


@contextmanager
def turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Wait until this test may run: beside others, or alone.

    Whoever waits to be alone keeps the door, so that no further test slips in meanwhile.
    """
    with (folder / "door").open("w") as door, (folder / "room").open("w") as room:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield


def _is_measured(item: pytest.Item) -> bool:
    return item.get_closest_marker("bench") is not None
