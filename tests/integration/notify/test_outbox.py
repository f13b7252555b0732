"""The outbox: each notice once, whoever comes upon it, and each delivery one sender's at a time."""

import datetime as dt
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from tests.integration.notify.spending import webhook

from gpuledger.database.engine import make_engine, writing
from gpuledger.kernel.errors import NotFound
from gpuledger.notify import outbox
from gpuledger.notify.notices import Kind, Notice
from gpuledger.notify.patience import DELAYS_S
from gpuledger.notify.payloads import BudgetThreshold
from gpuledger.notify.recipients import Recipients

NOW = dt.datetime(2026, 12, 3, 12, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)
BOTH = Recipients((webhook("a"), webhook("b")))
NAMES = ["webhook/a", "webhook/b"]


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    found = make_engine(database_url)
    yield found
    found.dispose()


def notice(n: int = 50, *, is_overtaken: bool = False) -> Notice:
    data = BudgetThreshold(
        cluster="alpha",
        period="2026-12",
        account="org/a",
        threshold_percent=n,
        spent_gpu_ms=n,
        given_gpu_ms=100,
    )
    return Notice(Kind.BUDGET_THRESHOLD, (str(n),), data, is_overtaken=is_overtaken)


def record(engine: sa.Engine, *found: Notice, now: dt.datetime = NOW) -> list[str]:
    with writing(engine) as writer:
        return [each.id for each in outbox.record(writer, found, BOTH, now)]


def due(engine: sa.Engine, now: dt.datetime = NOW) -> list[tuple[str, str, int]]:
    with writing(engine) as writer:
        return [tuple(each) for each in outbox.due(writer, NAMES, now)]


def test_a_notice_is_new_once(engine: sa.Engine) -> None:
    assert record(engine, notice(), notice()) == [notice().id]
    assert record(engine, notice(), notice(80)) == [notice(80).id]
    with writing(engine) as writer:
        assert outbox.unknown(writer, [notice(), notice(100)]) == [notice(100)]


def test_each_target_is_to_be_told(engine: sa.Engine) -> None:
    record(engine, notice())
    assert due(engine) == [(notice().id, name, 0) for name in NAMES]


def test_nobody_is_told_what_another_says(engine: sa.Engine) -> None:
    assert record(engine, notice(is_overtaken=True)) == [notice().id]
    assert due(engine) == []
    assert record(engine, notice()) == [], "it is written down as told"


def test_a_transaction_that_is_undone_has_noticed_nothing(engine: sa.Engine) -> None:
    with writing(engine) as writer:
        outbox.record(writer, [notice()], BOTH, NOW)
        writer.rollback()
    assert record(engine, notice()) == [notice().id]


def test_of_many_who_notice_at_once_one_writes_it_down(engine: sa.Engine) -> None:
    """In whatever order each has them: nobody waits for somebody who waits for them."""
    found = [notice(n) for n in range(1, 40)]
    with ThreadPoolExecutor(4) as pool:
        new = list(pool.map(lambda n: record(engine, *found[n:], *found[:n]), range(0, 40, 5)))
    assert sorted(each for some in new for each in some) == sorted(each.id for each in found)


def test_what_is_claimed_is_nobody_elses_until_it_ends(engine: sa.Engine) -> None:
    record(engine, notice())
    with (
        writing(engine) as one,
        writing(engine) as two,
        writing(engine) as three,
        outbox.claimed(one, NAMES, NOW) as a,
        outbox.claimed(two, NAMES, NOW) as b,
        outbox.claimed(three, NAMES, NOW) as c,
    ):
        assert a is not None
        assert b is not None
        assert {a.target, b.target} == set(NAMES)
        assert c is None
    assert len(due(engine)) == 2, "nobody said that it was sent"


def test_what_is_claimed_and_sent_is_due_no_more(engine: sa.Engine) -> None:
    record(engine, notice())
    with writing(engine) as writer, outbox.claimed(writer, NAMES, NOW) as delivery:
        assert delivery is not None
        assert delivery.body == notice().body(NOW)
        outbox.mark_sent(writer, delivery, NOW)
    assert [target for _, target, _ in due(engine)] == ["webhook/b"]


def fail(engine: sa.Engine, now: dt.datetime, *, is_final: bool = False) -> None:
    with writing(engine) as writer, outbox.claimed(writer, ["webhook/a"], now) as delivery:
        assert delivery is not None
        outbox.mark_failed(writer, delivery, "x" * 9999, now, is_final=is_final)


def told(engine: sa.Engine) -> dict[str, object]:
    with writing(engine) as writer:
        return dict(outbox.listed(writer, 5)[0]["deliveries"][0])


def test_what_failed_waits_and_is_given_up_in_the_end(engine: sa.Engine) -> None:
    record(engine, notice())
    now = NOW
    for attempt, wait_s in enumerate(DELAYS_S, start=1):
        fail(engine, now)
        assert told(engine)["attempts"] == attempt
        now += dt.timedelta(seconds=wait_s)
        assert [each for each in due(engine, now - dt.timedelta.resolution) if each[1] == "webhook/a"] == []
    fail(engine, now)
    assert (told(engine)["state"], told(engine)["attempts"]) == ("given_up", len(DELAYS_S) + 1)
    assert len(str(told(engine)["said"])) == 500


def test_what_is_no_use_to_try_again_is_given_up_at_once(engine: sa.Engine) -> None:
    record(engine, notice())
    fail(engine, NOW, is_final=True)
    assert told(engine)["state"] == "given_up"
    assert told(engine)["next_at"] is None


def test_a_target_that_the_file_does_not_have_is_not_claimed(engine: sa.Engine) -> None:
    record(engine, notice())
    with writing(engine) as writer, outbox.claimed(writer, ["webhook/c"], NOW) as delivery:
        assert delivery is None
    with writing(engine) as writer, outbox.claimed(writer, [], NOW) as delivery:
        assert delivery is None


def test_what_nobody_sent_for_a_week_is_no_news(engine: sa.Engine) -> None:
    record(engine, notice())
    with writing(engine) as writer:
        assert outbox.give_up_stale(writer, NOW + outbox.STALE) == 0
        assert outbox.give_up_stale(writer, NOW + outbox.STALE + MINUTE) == 2
    assert due(engine) == []


def test_the_newest_are_listed_with_how_far_each_target_is(engine: sa.Engine) -> None:
    record(engine, notice())
    record(engine, notice(80), now=NOW + MINUTE)
    with writing(engine) as writer:
        assert [each["id"] for each in outbox.listed(writer, 9)] == [notice(80).id, notice().id]
        (found,) = outbox.listed(writer, 1)
        assert found["type"] == "budget.threshold"
        assert [(each["target"], each["state"]) for each in found["deliveries"]] == [
            (name, "due") for name in NAMES
        ]


def test_a_payload_is_found_by_its_id(engine: sa.Engine) -> None:
    record(engine, notice())
    with writing(engine) as writer:
        assert outbox.get_body(writer, notice().id) == notice().body(NOW)
        with pytest.raises(NotFound, match="ntc_none"):
            outbox.get_body(writer, "ntc_none")


@pytest.mark.parametrize(
    "statement", ["UPDATE notify.notices SET body = ''", "DELETE FROM notify.notices", "DELETE FROM notify.deliveries",
                  "UPDATE notify.deliveries SET target = 'x'"]
)  # fmt: skip
def test_what_was_noticed_never_changes(engine: sa.Engine, statement: str) -> None:
    record(engine, notice())
    with pytest.raises(DBAPIError, match="permission denied"), writing(engine) as writer:
        writer.exec_driver_sql(statement)
