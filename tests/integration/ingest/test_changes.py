"""Changes are booked once for what they were decided on, and open the periods that they can."""

import msgspec
import sqlalchemy as sa

from gpuledger.database.engine import reading
from gpuledger.events.budget import ShareSet
from gpuledger.events.host import Registered
from gpuledger.ingest.changes import Change, _event, apply
from gpuledger.ingest.intake import Intake
from gpuledger.ledger import queries

SOURCE = "test/file"
SHARE = Change("share", (ShareSet(account="org/a", share=3, reason="r", by="ada"),))
BACK = Change("share", (ShareSet(account="org/a", share=1, reason="r", by="ada"),))
HOST = Change("host", (Registered(cluster="alpha", host="h1", gpus=8, gpu_model="h100"),))


def shares(engine: sa.Engine) -> list[tuple[int, int]]:
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT share, set_seq FROM ledger.shares ORDER BY set_seq")
        return [tuple(row) for row in rows]


def test_a_share_set_to_and_fro_for_one_moment_is_booked_each_time(intake: Intake) -> None:
    for change in (SHARE, BACK, SHARE):
        apply(intake, [change], 0, SOURCE)
    assert [share for share, _ in shares(intake.engine)] == [3, 1, 3]


def test_the_identity_of_a_change_says_nothing_of_who_ordered_it_and_why(intake: Intake) -> None:
    ids = set()
    for by, reason in (("ada", "r"), ("grace", "another")):
        fact = msgspec.structs.replace(SHARE.facts[0], by=by, reason=reason)
        ids.add(_event(fact, 0, SOURCE, 0).id)
    assert len(ids) == 1


def test_the_books_that_changes_are_of_are_found(intake: Intake) -> None:
    assert apply(intake, [SHARE, HOST], 0, SOURCE) == {}, "nothing has moved, so no period opens"
    with reading(intake.engine) as reader:
        assert {status.book for status in queries.book_heads(reader)} == {"alpha", "~org"}
