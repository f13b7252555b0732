"""Tokens in the database: recognised while they are good, replaced without a gap, never deleted."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from gpuledger.database.engine import make_engine, reading, writing
from gpuledger.identity import secrets, store
from gpuledger.identity.caller import Scope
from gpuledger.identity.roles import Role
from gpuledger.identity.store import Order, Token
from gpuledger.kernel.errors import NotFound, Refused, Unidentified

NOW = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)


@pytest.fixture
def engine(database_url: str) -> sa.Engine:
    return make_engine(database_url)


def made(engine: sa.Engine, **changes: object) -> tuple[str, Token]:
    asked = {
        "name": "lin",
        "role": Role.MANAGER,
        "scope": Scope("org/vision", ("a", "b")),
        "lifetime": DAY,
        "by": "root",
    }
    with writing(engine) as writer:
        return store.create(writer, Order(**{**asked, **changes}), NOW)  # type: ignore[arg-type]


def recognised(engine: sa.Engine, text: str, now: dt.datetime = NOW) -> tuple[store.Caller, bool]:
    with reading(engine) as reader:
        return store.recognise(reader, text, now)


def test_who_shows_a_token_is_known_by_it(engine: sa.Engine) -> None:
    text, token = made(engine)
    caller, _ = recognised(engine, text)
    assert (caller.name, caller.role, caller.scope, caller.token) == (
        "lin", Role.MANAGER, Scope("org/vision", ("a", "b")), token.id,
    )  # fmt: skip


def test_no_column_holds_the_secret(engine: sa.Engine) -> None:
    text, token = made(engine)
    with engine.connect() as connection:
        row = str(connection.exec_driver_sql("SELECT * FROM identity.tokens").one())
    assert text.rpartition("_")[2] not in row
    assert "digest" not in token.as_json()


def test_wrong_and_unknown_tokens_are_refused_alike(engine: sa.Engine) -> None:
    text, token = made(engine)
    other = secrets.make().text
    forged = f"gpl_{token.id}_{other.rpartition('_')[2]}"
    said = set()
    for shown in (other, forged, "nonsense"):
        with pytest.raises(Unidentified) as refused:
            recognised(engine, shown)
        said.add((refused.value.message, refused.value.hint))
    assert len(said) == 1
    assert recognised(engine, text)


def test_it_is_good_up_to_its_end_and_not_at_it(engine: sa.Engine) -> None:
    text, token = made(engine)
    assert recognised(engine, text, token.expires_at - dt.timedelta.resolution)
    with pytest.raises(Unidentified, match="good until 2026-12-02T12:00:00Z"):
        recognised(engine, text, token.expires_at)


def test_a_revoked_one_opens_nothing_and_stays_on_the_list(engine: sa.Engine) -> None:
    text, token = made(engine)
    with writing(engine) as writer:
        first = store.revoke(writer, token.id, by="root", now=NOW)
        again = store.revoke(writer, token.id, by="somebody", now=NOW + DAY)
    assert first == again
    assert (first.revoked_at, first.revoked_by) == (NOW, "root")
    with pytest.raises(Unidentified, match="revoked"):
        recognised(engine, text)
    with reading(engine) as reader:
        assert store.every(reader) == [first]


def test_a_new_one_takes_over_while_the_old_one_is_still_good(engine: sa.Engine) -> None:
    text, token = made(engine)
    with writing(engine) as writer:
        new_text, new = store.rotate(
            writer, token.id, overlap=dt.timedelta(hours=2), lifetime=30 * DAY, by="root", now=NOW
        )
    assert new.replaces == token.id
    assert (new.name, new.role, new.scope) == (token.name, token.role, token.scope)
    assert recognised(engine, text, NOW + dt.timedelta(minutes=119))
    assert recognised(engine, new_text)
    with pytest.raises(Unidentified):
        recognised(engine, text, NOW + dt.timedelta(hours=2))


def test_an_overlap_does_not_lengthen_a_life(engine: sa.Engine) -> None:
    _, token = made(engine)
    with writing(engine) as writer:
        store.rotate(writer, token.id, overlap=9 * DAY, lifetime=DAY, by="root", now=NOW)
        assert store.get(writer, token.id).expires_at == token.expires_at
        with pytest.raises(Refused, match="overlap"):
            store.rotate(writer, token.id, overlap=-DAY, lifetime=DAY, by="root", now=NOW)
        store.revoke(writer, token.id, by="root", now=NOW)
        with pytest.raises(Refused, match="no longer good"):
            store.rotate(writer, token.id, overlap=DAY, lifetime=DAY, by="root", now=NOW)


def test_its_use_is_noted_once_a_minute(engine: sa.Engine) -> None:
    text, token = made(engine)
    assert recognised(engine, text)[1]
    with writing(engine) as writer:
        store.note_use(writer, token.id, NOW)
    assert not recognised(engine, text, NOW + dt.timedelta(seconds=59))[1]
    assert recognised(engine, text, NOW + dt.timedelta(seconds=60))[1]
    for seconds, noted_at in ((59, 0), (60, 60), (30, 60)):
        with writing(engine) as writer:
            store.note_use(writer, token.id, NOW + dt.timedelta(seconds=seconds))
            assert store.get(writer, token.id).last_used_at == NOW + dt.timedelta(seconds=noted_at)


def test_what_is_revoked_at_the_same_moment_is_not_replaced(engine: sa.Engine) -> None:
    _, token = made(engine)

    def replace() -> None:
        with writing(engine) as writer:
            store.rotate(writer, token.id, overlap=DAY, lifetime=DAY, by="root", now=NOW)

    with ThreadPoolExecutor(1) as pool:
        with writing(engine) as writer:
            store.revoke(writer, token.id, by="root", now=NOW)
            replacing = pool.submit(replace)
            with pytest.raises(FutureTimeout):
                replacing.result(timeout=0.3)  # it waits for what becomes of the other
        with pytest.raises(Refused, match="no longer good"):
            replacing.result(timeout=30)
    with reading(engine) as reader:
        assert [one.id for one in store.every(reader)] == [token.id]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"lifetime": dt.timedelta()}, "good for"),
        ({"lifetime": dt.timedelta(days=4000)}, "good for"),
        ({"scope": Scope()}, "subtree"),
    ],
)
def test_what_cannot_be_is_refused(engine: sa.Engine, changes: dict[str, object], says: str) -> None:
    with pytest.raises(Refused, match=says):
        made(engine, **changes)


def test_an_id_that_is_none(engine: sa.Engine) -> None:
    with reading(engine) as reader, pytest.raises(NotFound, match="abc"):
        store.get(reader, "abc")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE identity.tokens SET role = 'admin'",
        "UPDATE identity.tokens SET subtree = NULL",
        "UPDATE identity.tokens SET digest = '\\x00'",
        "DELETE FROM identity.tokens",
        "TRUNCATE identity.tokens",
    ],
)
def test_the_writer_cannot_make_a_token_reach_further(engine: sa.Engine, statement: str) -> None:
    made(engine)
    with pytest.raises(DBAPIError, match="permission denied"), writing(engine) as writer:
        writer.exec_driver_sql(statement)


def test_reports_do_not_read_tokens(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("SET LOCAL ROLE gpuledger_reader")
        with pytest.raises(DBAPIError, match="permission denied"):
            connection.exec_driver_sql("SELECT * FROM identity.tokens")
