"""Which trap is tried in which format: ``pytest --collect-only tests/conformance`` says so, for docs/traps.md."""

import pytest


def pytest_collection_finish(session: pytest.Session) -> None:
    """Print a line for each mark of each test, when tests are only listed."""
    if session.config.option.collectonly:
        for item in session.items:
            for mark in item.iter_markers("trap"):
                number, source = mark.args
                print(f"trap\t{number}\t{source}\t{item.nodeid.partition('::')[0]}")
