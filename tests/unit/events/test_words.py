"""Of a reason the journal keeps the words that programs give, and nothing that somebody typed."""

import datetime as dt
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect
from tests.property.sources.seeds import SEEDS, Seed

from gpuledger.events import heartbeat, host, own, workload
from gpuledger.events.acceptance import understood
from gpuledger.events.envelope import type_of
from gpuledger.events.fields import KEPT, Kept
from gpuledger.events.orders import Order
from gpuledger.events.registry import Fact, fact_type, names
from gpuledger.events.words import _WORDS, ASIDE, apart, code_of, exit_code, known_words, words_of
from gpuledger.kernel.errors import BadRecord
from gpuledger.ledger.lost_ends import REASON, REBOOT
from gpuledger.ledger.stops import CANCELLATIONS, NODE_FAILURES, ORDINARY_ENDS, why
from gpuledger.sources.protocol import Translated
from gpuledger.sources.registry import source

RECORDS = 100
"""Of each source."""

Field = tuple[type[Fact], str, Kept | None, bool]


def strings(told: inspect.Type, kept: Kept | None = None) -> Iterator[tuple[Kept | None, str]]:
    """Yield what is kept of each string that a value of a type can hold, keys of mappings too."""
    match told:
        case inspect.Metadata(type=inner, extra=extra):
            yield from strings(inner, (extra or {}).get(KEPT, kept))
        case inspect.UnionType(types=types):
            for one in types:
                yield from strings(one, kept)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            yield from strings(item, kept)
        case inspect.DictType(key_type=key, value_type=value):
            yield from chain(strings(key, kept), strings(value, kept))
        case inspect.StructType(fields=fields):
            for field in fields:
                yield from ((what, f"{field.encode_name}.{path}") for what, path in strings(field.type))
        case inspect.StrType():
            yield kept, ""
        case inspect.AnyType():
            yield kept, "(any)"


FIELDS: list[Field] = [
    (fact, path.strip("."), kept, fact in own.OWN)
    for name in names()
    if (fact := fact_type(name)) is not None
    for kept, path in strings(inspect.type_info(fact))
]


def test_every_string_of_every_event_says_what_the_journal_keeps_of_it() -> None:
    assert [
        (fact.__name__, path) for fact, path, kept, _ in FIELDS if kept is None and "(any)" not in path
    ] == []
    assert {kept for _, _, kept, _ in FIELDS if kept} == set(Kept)


def test_what_may_hold_anything_is_written_by_the_ledger_alone() -> None:
    """A cycle's record; and what the ledger composes, which no stream may tell."""
    assert {(fact.__name__, path) for fact, path, kept, _ in FIELDS if kept is None} == {
        ("AllocationIssued", "record.(any)"),
        ("AllocationAmended", "record.(any)"),
    }
    assert [
        (fact.__name__, path) for fact, path, kept, is_own in FIELDS if kept is Kept.COMPOSED and not is_own
    ] == []


def test_words_that_somebody_typed_stand_in_orders_only() -> None:
    found = {fact for fact, _, kept, _ in FIELDS if kept is Kept.TYPED}
    assert found == set(Order.__args__)


def test_reasons_and_comments_have_no_other_kind() -> None:
    """Whoever adds a field of such a name must say how its words are kept from the journal."""
    telling = {"reason", "comment", "description", "text", "message", "note", "exit"}
    allowed = {Kept.WORDS, Kept.EXIT, Kept.TYPED, Kept.COMPOSED}
    found = [(f.__name__, p, k) for f, p, k, _ in FIELDS if telling & set(p.split(".")) and k not in allowed]
    assert found == []


NAME = "Ada Lovelace"
PEOPLES = [
    workload.Ended(cluster="a", workload="w", run="r", reason=f"for {NAME}", exit=NAME),
    workload.Preempted(cluster="a", workload="w", run="r", reason=NAME),
    workload.Requeued(cluster="a", workload="w", run="r", reason=f"NODE_FAIL, said {NAME}"),
    workload.ClassChanged(cluster="a", workload="w", run="r", klass="unallocated", reason=NAME),
    workload.Submitted(cluster="a", workload="w", account="x", user="u", gpus_milli=1, kind=NAME),
    workload.Updated(cluster="a", workload="w", kind=NAME),
    workload.Checkpointed(cluster="a", workload="w", run="r", restore=f"/scratch/{NAME}/7"),
    *(
        kind(cluster="a", host="h", gpus=8, gpu_model="H100", reason=f"drain/ask-{NAME}")
        for kind in (host.Registered, host.StateChanged, host.Retired)
    ),
    heartbeat.Heartbeat(
        cluster="a",
        gaps=[
            heartbeat.Gap(start=dt.datetime(2026, 12, 1, tzinfo=dt.UTC), end=dt.datetime(2026, 12, 2, tzinfo=dt.UTC),
                          messages=3, reason=NAME)
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize("fact", PEOPLES, ids=lambda fact: type(fact).__name__)
def test_a_name_in_a_reason_is_put_aside_and_nothing_else_changes(fact: Fact) -> None:
    kept, texts = apart(fact)
    assert "Ada" not in str(kept)
    assert "Ada" in str(texts)
    assert apart(kept) == (kept, {})
    restored = {field: texts.get(field, getattr(kept, field)) for field in fact.__struct_fields__}
    assert restored == {field: getattr(fact, field) for field in fact.__struct_fields__}


def test_every_fact_that_holds_words_of_programs_is_tried() -> None:
    found = {fact for fact, _, kept, _ in FIELDS if kept in (Kept.WORDS, Kept.EXIT)}
    assert found == {type(fact) for fact in PEOPLES}


WELL_FORMED: list[tuple[str, str, dict[str, Any]]] = [
    ("budget.granted", field, {"account": "org/a", "cluster": "a", "period": "2026-12", "gpu_ms": 1, "by": "-",
                               "reason": "granted", "rollover": None})
    for field in ("period", "rollover")
] + [
    ("budget.transferred", "period", {"account": "org/a", "to": "org/b", "cluster": "a", "period": "2026-12",
                                      "gpu_ms": 1, "by": "-", "reason": "transferred"}),
    *(
        ("policy.changed", field, {"policy": "organisation", "timezone": "UTC", "period": "month"})
        for field in ("policy", "timezone", "period")
    ),
    ("policy.changed", "settings", {"policy": "settings", "settings": {"grace_s": 5}}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "field", "data"), WELL_FORMED, ids=lambda value: str(value)[:20])
def test_what_has_a_form_is_refused_at_the_door_in_another(
    name: str, field: str, data: dict[str, Any]
) -> None:
    def said(data: dict[str, Any]) -> bytes:
        return msgspec.json.encode(
            {"specversion": "1.0", "id": "1", "source": "s", "type": type_of(name), "time": "2026-12-01T00:00:00Z",
             "data": data}
        )  # fmt: skip

    assert understood(said(data)).name == name
    with pytest.raises(BadRecord):
        understood(said(data | {field: {"grace_s": NAME} if field == "settings" else NAME}))


def test_every_string_of_a_form_is_tried() -> None:
    found = {(fact, path) for fact, path, kept, is_own in FIELDS if kept is Kept.FORM and not is_own}
    assert found == {(fact_type(name), field) for name, field, _ in WELL_FORMED}


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        ("NODE_FAIL", "NODE_FAIL"),
        ("REQUEUED,NODE_FAIL", "REQUEUED,NODE_FAIL"),
        ("drain/not-responding", "drain/not-responding"),
        ("Node unexpectedly rebooted", ASIDE),  # its source writes it as one code
        ("down/node-unexpectedly-rebooted", "down/node-unexpectedly-rebooted"),
        ("xid-79", "xid-79"),
        ("xid-74-repeated", "xid-74-repeated"),
        ("CANCELLED by 1001", "CANCELLED (aside)"),
        ("drain/ask-ada-about-it", "drain (aside)"),
        ("ada saw NODE_FAIL on it", "(aside) NODE_FAIL (aside)"),
        ("ada", ASIDE),
        ("", ""),
        ("  ", "  "),
        ("failed!", "failed"),
        (".succeeded", "succeeded"),
        ("\u00e9succeeded", ASIDE),
        ("Ädä", ASIDE),
        (ASIDE, ASIDE),
    ],
)
def test_known_words_stay_and_all_else_goes(reason: str, kept: str) -> None:
    assert known_words(reason) == kept


known = st.sampled_from([*sorted(_WORDS), "NODE_FAIL", "OOMKilled", "xid-79", "Not-Responding"])
others = st.sampled_from(
    [" ", ",", "/", "-", "_", "\n", ASIDE, "ada", "A", "d", "é", "İ", ".", "!", "\u212a", "1"]
)


@given(st.lists(known | others, max_size=8).map("".join))
def test_what_is_kept_holds_known_words_only_and_says_why_as_all_of_it_did(reason: str) -> None:
    kept = known_words(reason)
    words = words_of(kept.replace(ASIDE, ""))
    assert set(words) <= set(words_of(reason))
    assert [word for word in words if known_words(word) != word] == []
    assert re.fullmatch(r"(\(aside\)|[A-Za-z0-9_,;/+\s-])*", kept)
    assert why(kept) is why(reason)
    assert known_words(kept) == kept


def test_every_word_that_the_ledger_acts_on_is_known() -> None:
    words = [
        *NODE_FAILURES,
        *CANCELLATIONS,
        *ORDINARY_ENDS,
        REASON,
        REBOOT,
        "over-budget",
        "healthy",
        "clean",
    ]
    assert [word for word in words if known_words(word) != word] == []


@pytest.mark.parametrize(
    ("reason", "code"),
    [("NODE_FAIL", "node_fail"), ("drain/ask-ada", "drain"), ("ada", ""), (" xid-79 ", "xid-79"), ("", "")],
)
def test_the_code_of_a_reason_is_what_is_known_of_it(reason: str, code: str) -> None:
    assert code_of(reason) == code


@pytest.mark.parametrize("code", ["0", "1", "-9", "0:15", "271:0", "1.0", "137"])
def test_an_exit_code_stays(code: str) -> None:
    assert exit_code(code) == code


@pytest.mark.parametrize("said", ["", "ada", "0:ada", "exit 1", "1" * 11])
def test_what_is_no_exit_code_goes(said: str) -> None:
    assert exit_code(said) == ASIDE


@pytest.mark.parametrize("seed", SEEDS, ids=str)
def test_reasons_of_real_records_are_known(seed: Seed) -> None:
    typed = {"slurm-nodes": "not-responding/replace", "events": "exit"}
    for item in islice(source(seed.source).read(seed.path, seed.options), RECORDS):
        for event, _ in item.events if isinstance(item, Translated) else ():
            assert set(apart(event.data)[1].values()) <= {typed.get(seed.source)}
