"""How far a scheduler was read is kept, and belongs to the collector that came last."""

import pytest
import sqlalchemy as sa

from gpuledger.collect.cursor import Cursor
from gpuledger.kernel.errors import Fenced


def test_it_begins_at_nothing_and_goes_on_where_it_stood(engine: sa.Engine) -> None:
    assert Cursor(engine, "sacct/alpha").at_s == 0

    Cursor(engine, "sacct/alpha").advance(500)

    assert Cursor(engine, "sacct/alpha").at_s == 500
    assert Cursor(engine, "sacct/beta").at_s == 0


def test_it_never_goes_back(engine: sa.Engine) -> None:
    cursor = Cursor(engine, "sacct/alpha")
    cursor.advance(500)

    cursor.advance(400)

    assert Cursor(engine, "sacct/alpha").at_s == 500


def test_a_second_collector_fences_the_first(engine: sa.Engine) -> None:
    first = Cursor(engine, "sacct/alpha")
    second = Cursor(engine, "sacct/alpha")

    with pytest.raises(Fenced, match=r"sacct/alpha\[0\] was taken over"):
        first.advance(900)

    second.advance(700)
    assert Cursor(engine, "sacct/alpha").at_s == 700
