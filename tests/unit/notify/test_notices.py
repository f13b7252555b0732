"""A notice's id follows from what it is about; its payload is the same bytes each time, and reads back as it was."""

import datetime as dt
import re

import pytest

from gpuledger.notify.notices import AUDIENCES, CLASSES, Kind, Notice, read_body
from gpuledger.notify.payloads import BudgetThreshold, Trial

AT = dt.datetime(2026, 12, 1, 4, 30, tzinfo=dt.UTC)
HALF = BudgetThreshold(
    cluster="alpha",
    period="2026-12",
    account="org/vision",
    threshold_percent=50,
    spent_gpu_ms=6,
    given_gpu_ms=10,
)


def notice(*key: str, kind: Kind = Kind.BUDGET_THRESHOLD) -> Notice:
    return Notice(kind, key, HALF)


def test_the_id_follows_from_kind_and_key_alone() -> None:
    one = notice("a", "b")
    assert one.id == Notice(one.kind, one.key, Trial(by="x"), is_overtaken=True).id
    assert len({one.id, notice("a").id, notice("ab").id, notice("a", "b", kind=Kind.TEST).id}) == 4


def test_parts_of_a_key_do_not_run_together() -> None:
    assert notice("a", "b,c").id != notice("a,b", "c").id
    assert notice('a","b').id != notice("a", "b").id


def test_the_id_can_be_signed() -> None:
    """The signature joins id, time and body by full stops."""
    assert re.fullmatch(r"ntc_[0-9a-f]{40}", notice("a.b", "ü\n").id)


def test_an_id_once_told_stays_what_it_is() -> None:
    """A release that made ids otherwise would tell everybody everything again."""
    assert notice("alpha", "2026-12", "org/vision", "50").id == "ntc_db6831ebf1845efc04c669529de17eed374c5c2b"


def test_a_payload_reads_back_as_it_was() -> None:
    body = notice("a").body(AT)
    assert body.startswith(b'{"type":"budget.threshold","timestamp":"2026-12-01T04:30:00Z","data":{')
    assert body == notice("a").body(AT)
    assert read_body(body) == (Kind.BUDGET_THRESHOLD, AT, HALF)


def test_what_it_is_about_is_read_from_its_data() -> None:
    assert (notice("a").cluster, notice("a").account) == ("alpha", "org/vision")
    assert (Notice(Kind.TEST, (), Trial(by="x")).cluster, Notice(Kind.TEST, (), Trial(by="x")).account) == (
        None,
        None,
    )


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_has_a_class_and_an_audience(kind: Kind) -> None:
    assert kind in CLASSES
    assert kind in AUDIENCES
