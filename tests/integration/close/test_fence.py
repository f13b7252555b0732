"""One closer of a cluster at a time; the lock goes with whoever held it."""

import pytest
from tests.integration.close.closing import Books

from gpuledger.close.fence import one_closer
from gpuledger.kernel.errors import Conflict


def test_another_closer_of_the_cluster_waits_and_is_told(books: Books) -> None:
    engine = books.ledger.engine
    with one_closer(engine, "alpha"):
        with (
            pytest.raises(Conflict, match="another closer of alpha is at work"),
            one_closer(engine, "alpha", 1),
        ):
            pytest.fail("two at once")
        with one_closer(engine, "beta", 1):
            pass
    with one_closer(engine, "alpha", 1):
        pass


def test_a_closer_that_fails_leaves_no_lock(books: Books) -> None:
    engine = books.ledger.engine
    with pytest.raises(ZeroDivisionError), one_closer(engine, "alpha"):
        1 / 0  # noqa: B018 - it fails
    with one_closer(engine, "alpha", 1):
        pass
