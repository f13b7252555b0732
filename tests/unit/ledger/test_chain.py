"""The seal of a row covers all of it, and what came before."""

import datetime as dt
import hashlib

import pytest

from gpuledger.kernel.clock import EPOCH
from gpuledger.ledger.chain import GENESIS, JournalRow, row_hash
from gpuledger.ledger.charges import Posting, Pot

ROW = JournalRow(
    book="c", seq=1, recorded_at=EPOCH, effective_at=EPOCH, type="workload.ended", source="s", event_id="e",
    digest=b"\x01", workload="w", run="r", body="{}", extra_ref=None,
)  # fmt: skip
POSTING = Posting(
    "charge",
    "gpu_ms",
    5,
    Pot("budget", "a", "1970-01"),
    Pot("spent", "a", "1970-01"),
    "w",
    "r",
    dt.date(1970, 1, 1),
)
LATER = EPOCH + dt.timedelta(microseconds=1)


def test_the_seal_is_the_sha256_of_the_seal_before_and_all_columns_as_a_json_array() -> None:
    # Every chain ever written depends on this encoding: a change here is a change of history.
    columns = '["c",1,0,0,"workload.ended","s","e","AQ==","w","r","{}",null,'
    pots = '["budget","a","1970-01"],["spent","a","1970-01"]'
    postings = f'[["charge","gpu_ms",5,{pots},"w","r","1970-01-01",null,null]]]'
    seal = hashlib.sha256(bytes(32) + columns.encode() + postings.encode()).digest()
    assert row_hash(GENESIS, ROW, [POSTING]) == seal


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("book", "d"), ("seq", 2), ("recorded_at", LATER), ("effective_at", LATER), ("type", "workload.started"),
        ("source", "t"), ("event_id", "f"), ("digest", b"\x02"), ("workload", None), ("run", "s"), ("body", "{ }"),
        ("extra_ref", b""),
    ],
)  # fmt: skip
def test_a_change_in_any_column_changes_the_seal(column: str, value: object) -> None:
    assert row_hash(GENESIS, ROW._replace(**{column: value}), [POSTING]) != row_hash(GENESIS, ROW, [POSTING])


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("code", "unallocated"), ("commodity", "x"), ("amount", 6), ("debit", Pot("budget", "a", "1970-02")),
        ("credit", Pot("spent", "b", "1970-01")), ("workload", "v"), ("run", None), ("day", dt.date(1970, 1, 2)),
        ("reverses_seq", 1), ("reason", ""),
    ],
)  # fmt: skip
def test_a_change_in_any_column_of_a_posting_changes_the_seal(column: str, value: object) -> None:
    changed = POSTING._replace(**{column: value})
    assert row_hash(GENESIS, ROW, [changed]) != row_hash(GENESIS, ROW, [POSTING])


def test_every_column_was_tried_above() -> None:
    tried = {
        name
        for mark in (test_a_change_in_any_column_changes_the_seal,)
        for name, _ in mark.pytestmark[0].args[1]
    }
    assert tried == set(JournalRow._fields)
    of_posting = test_a_change_in_any_column_of_a_posting_changes_the_seal
    assert {name for name, _ in of_posting.pytestmark[0].args[1]} == set(Posting._fields)


def test_the_seal_covers_the_seal_before_it_and_the_order_of_postings() -> None:
    other = POSTING._replace(amount=6)
    assert row_hash(b"\x01" * 32, ROW, []) != row_hash(GENESIS, ROW, [])
    assert row_hash(GENESIS, ROW, [POSTING, other]) != row_hash(GENESIS, ROW, [other, POSTING])
    assert row_hash(GENESIS, ROW, [POSTING]) != row_hash(GENESIS, ROW, [])


def test_moving_text_between_neighbouring_columns_changes_the_seal() -> None:
    one, other = ROW._replace(source="ab", event_id="c"), ROW._replace(source="a", event_id="bc")
    assert row_hash(GENESIS, one, []) != row_hash(GENESIS, other, [])


def test_an_instant_is_the_same_in_any_zone() -> None:
    elsewhere = ROW._replace(recorded_at=EPOCH.astimezone(dt.timezone(dt.timedelta(hours=5, minutes=45))))
    assert row_hash(GENESIS, elsewhere, []) == row_hash(GENESIS, ROW, [])
