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


def test_a_cursor_that_collides_is_opened_and_moved_all_the_same(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        for statement in (
            "CREATE SEQUENCE public.collisions",
            "GRANT USAGE ON SEQUENCE public.collisions TO PUBLIC",
            # Every odd attempt is given up: what a sequence gave is given, whatever becomes of the transaction.
            """CREATE FUNCTION public.collide() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('public.collisions') % 2 = 1 THEN RAISE EXCEPTION 'in the way' USING ERRCODE = '40001'; END IF;
            RETURN NULL; END $$""",
            "CREATE TRIGGER collide AFTER INSERT ON ledger.stream_offsets EXECUTE FUNCTION public.collide()",
            "CREATE TRIGGER moving AFTER UPDATE OF position ON ledger.stream_offsets EXECUTE FUNCTION public.collide()",
        ):
            connection.execute(sa.text(statement))
    Cursor(engine, "sacct/alpha").advance(500)
    assert Cursor(engine, "sacct/alpha").at_s == 500
