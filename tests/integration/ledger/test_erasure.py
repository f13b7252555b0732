"""A person is forgotten: the name and key are nowhere, and nothing that anybody reports has changed."""

import threading

import msgspec
import pytest
from tests.integration.ledger.books import GPU_HOUR, HOUR, NOON, Ledger, ended, started, submitted, told
from tests.integration.ledger.forgetting import found, seen

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import AccountCreated, Granted, Part, ShareSet, Transferred, Word
from gpuledger.events.envelope import Event
from gpuledger.ingest.dead_letters import DeadLetter, put, resolve, waiting
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger.append import append
from gpuledger.ledger.erasure import Erasure, erase, plan
from gpuledger.ledger.quotations import Waiting

ADA, GRACE = "Ada Lovelace", "Grace Hopper"
SECRET = "analytical engine"
"""A text; no schema knows the key it comes under."""


def run(name: str, user: str, **extra: str) -> list[Event]:
    """A run, by ids that name nobody; the submission and the end carry the extra keys."""
    return [
        told(0, submitted(name, user=user), id=f"{name}/submitted", **extra),
        told(0, started(name), id=f"{name}/started"),
        told(HOUR, ended(name), id=f"{name}/ended", **extra),
    ]


@pytest.fixture
def booked(ledger: Ledger) -> Ledger:
    """Two runs of Ada's, one of which Grace started, and one of Grace's."""
    ledger.append(*run("w1", ADA, comment=SECRET), *run("w2", ADA))
    ledger.append(told(1, started("w2", "r2", user=GRACE), id="w2/restarted"))
    ledger.append(*run("w3", GRACE, comment="compiler"))
    return ledger


def do(ledger: Ledger, name: str = ADA) -> Erasure:
    with writing(ledger.engine) as writer:
        return erase(writer, name)


def token_of(ledger: Ledger, name: str = ADA) -> str:
    return str(ledger.value("SELECT token FROM side.user_keys WHERE name = :name", name=name))


def test_nothing_anywhere_holds_the_name_the_key_or_the_texts(booked: Ledger) -> None:
    key = bytes(booked.value("SELECT key FROM side.user_keys WHERE name = :name", name=ADA))
    needles = (ADA.encode(), b"Lovelace", key, key.hex().encode(), SECRET.encode())
    assert set(found(booked, *needles)) == {"side.user_keys.name", "side.user_keys.key", "side.texts.body"}
    do(booked)
    assert found(booked, *needles) == []
    assert set(found(booked, GRACE.encode(), b"compiler")) == {"side.user_keys.name", "side.texts.body"}


def test_heads_audit_digest_balances_and_reports_stay_as_they_were(booked: Ledger) -> None:
    before = seen(booked)
    do(booked)
    assert seen(booked) == before


def test_what_is_shown_is_what_is_done(booked: Ledger) -> None:
    token = token_of(booked)
    with reading(booked.engine) as reader:
        planned = plan(reader, ADA)
    assert planned == Erasure(token, rows=2, texts=2, dead_letters=0)
    assert do(booked) == planned
    assert booked.value("SELECT count(*) FROM ledger.journal WHERE body->>'user' = :token", token=token) == 2


def test_texts_of_a_workload_that_two_share_go_with_the_first(ledger: Ledger) -> None:
    ledger.append(*run("w1", ADA, comment=SECRET), told(1, started("w1", "r2", user=GRACE), id="again"))
    assert do(ledger, GRACE).texts == 2
    assert do(ledger, ADA).texts == 0


def test_texts_of_a_like_named_workload_of_another_cluster_stay(booked: Ledger) -> None:
    booked.append(told(0, submitted("w1", cluster="beta", user=GRACE), id="beta", comment="compiler"))
    do(booked)
    assert booked.value("SELECT count(*) FROM side.texts") == 3


def test_nobody_of_that_name(booked: Ledger) -> None:
    with pytest.raises(NotFound) as refused:
        do(booked, "Ada Lovelac")
    assert refused.value.hint == "did you mean Ada Lovelace?"
    for unknown in ("-", "x", token_of(booked)):
        with pytest.raises(NotFound):
            do(booked, unknown)


def test_erasing_again_finds_nobody(booked: Ledger) -> None:
    do(booked)
    before = seen(booked)
    with pytest.raises(NotFound, match="is not known here, or was erased"):
        do(booked)
    assert seen(booked) == before


def test_an_erasure_that_fails_erases_nothing(booked: Ledger) -> None:
    def crash() -> None:
        with writing(booked.engine) as writer:
            erase(writer, ADA)
            raise RuntimeError("power")

    with pytest.raises(RuntimeError, match="power"):
        crash()
    with reading(booked.engine) as reader:
        assert plan(reader, ADA).texts == 2


def test_a_later_event_of_the_same_person_gets_a_new_token(booked: Ledger) -> None:
    old = token_of(booked)
    do(booked)
    booked.append(*run("w9", ADA))
    assert token_of(booked) != old
    assert booked.used("user")[token_of(booked)] == 8 * GPU_HOUR
    with reading(booked.engine) as reader:
        assert plan(reader, ADA).rows == 1


def test_an_old_event_that_arrives_again_is_a_new_row_once_and_moves_no_amount(ledger: Ledger) -> None:
    """Its keyed digest cannot be recomputed, so that it cannot be known again; the rank of facts decides."""
    events = run("w1", ADA, comment=SECRET)
    ledger.append(*events)
    net, weighted, digest = ledger.net(), ledger.net("gpu_ms_weighted"), ledger.digest()
    balances = ledger.rows("SELECT * FROM ledger.balances ORDER BY 1, 2, 3, 4, 5, 6")
    do(ledger)

    again = ledger.append(*events)

    assert again.accepted == [(events[0].source, "w1/submitted")], "the one that names the person"
    assert again.repeated == 2, "facts that name nobody are known by their plain digest"
    assert (ledger.net(), ledger.net("gpu_ms_weighted"), ledger.digest()) == (net, weighted, digest)
    assert ledger.rows("SELECT * FROM ledger.balances ORDER BY 1, 2, 3, 4, 5, 6") == balances
    assert ledger.value("SELECT count(*) FROM ledger.postings WHERE seq > 3") == 0
    third = ledger.append(*events)
    assert (third.accepted, third.repeated) == ([], 3), "known again, under the new key"
    seen(ledger)
    assert do(ledger).texts == 1, "the name came back with the event, and goes again"
    assert found(ledger, ADA.encode(), SECRET.encode()) == []


def test_an_old_event_that_lost_to_another_still_loses_when_it_arrives_again(ledger: Ledger) -> None:
    events = run("w1", ADA)
    ledger.append(
        *events, told(0, submitted("w1", account="org/speech", user=GRACE), source="reconcile/x", id="y")
    )
    net = ledger.net()
    assert net == {("charge", "org/speech", "w1/r1", "1970-01-01"): 8 * GPU_HOUR}
    do(ledger)
    ledger.append(*events)
    assert ledger.net() == net


def letter(position: int, raw: bytes) -> DeadLetter:
    place = f"gpu.scheduler.events[0]@{position}"
    return DeadLetter("gpu.scheduler.events", 0, position, place, "bad-field", "why", "hint", raw)


def test_a_dead_letter_that_waits_is_named_and_kept_until_it_was_read(booked: Ledger) -> None:
    with writing(booked.engine) as writer:
        put(writer, [letter(7, msgspec.json.encode({"data": {"user": ADA}}))], NOON)
        (stored,) = waiting(writer)
    erased = do(booked)
    assert (erased.dead_letters, erased.waiting) == (1, (Waiting(stored.id, "gpu.scheduler.events[0]@7"),))
    assert found(booked, ADA.encode()) == ["ledger.dead_letters.raw"]

    with writing(booked.engine) as writer:
        resolve(writer, [stored.id], NOON)
    again = do(booked)

    assert again == Erasure(None, rows=0, texts=0, dead_letters=1)
    assert found(booked, ADA.encode()) == []
    with pytest.raises(NotFound):
        do(booked)


def ordered(ledger: Ledger) -> None:
    """Ada grants and transfers and says why, Grace sets a share and says why; the ledger makes the accounts."""
    names = ("org", "org/vision", "org/speech")
    ledger.append(
        *(told(0, AccountCreated(account=n, by=Part.INGEST, reason=Word.FIRST_SIGHT)) for n in names)
    )
    ledger.append(told(0, ShareSet(account="org/vision", share=3, reason="compiler", by=GRACE), id="share"))
    ledger.append(*orders(), *run("w1", GRACE))


def orders() -> list[Event]:
    granted = Granted(
        account="org/vision", cluster="alpha", period="1970-01", gpu_ms=100 * GPU_HOUR, reason=SECRET, by=ADA
    )
    moved = Transferred(
        account="org/vision", to="org/speech", cluster="alpha", period="1970-01", gpu_ms=GPU_HOUR, reason=SECRET,
        by=ADA,
    )  # fmt: skip
    return [told(0, granted, id="grant"), told(0, moved, id="transfer", comment=SECRET)]


def test_nothing_anywhere_holds_the_name_or_the_words_of_one_who_ordered(ledger: Ledger) -> None:
    ordered(ledger)
    token = token_of(ledger)
    assert set(found(ledger, ADA.encode(), SECRET.encode())) == {"side.user_keys.name", "side.texts.body"}
    before = seen(ledger)

    assert do(ledger) == Erasure(token, rows=2, texts=2)

    assert seen(ledger) == before
    assert found(ledger, ADA.encode(), SECRET.encode()) == []
    assert set(found(ledger, GRACE.encode(), b"compiler")) == {"side.user_keys.name", "side.texts.body"}
    assert do(ledger, GRACE).texts == 1
    assert seen(ledger) == before


def test_an_order_of_an_erased_person_that_arrives_again_is_known(ledger: Ledger) -> None:
    """Ranking lets no fact about work count twice; an order is a sum, and only its identity can see to that."""
    ordered(ledger)
    before = seen(ledger)
    do(ledger)
    again = ledger.append(*orders())
    assert (again.accepted, again.repeated) == ([], 2)
    assert seen(ledger) == before
    assert ledger.value("SELECT count(*) FROM side.texts") == 1, "what is known brings no words back"


def test_an_order_told_again_by_another_or_in_other_words_moves_no_amount(ledger: Ledger) -> None:
    ordered(ledger)
    before = seen(ledger)
    grant = orders()[0].data
    for by, reason in ((GRACE, SECRET), (ADA, "another"), (GRACE, "another")):
        told_again = told(0, msgspec.structs.replace(grant, by=by, reason=reason), id="grant")
        assert ledger.append(told_again).repeated == 1
    assert seen(ledger) == before


def test_texts_of_orders_that_nobody_signed_stay(ledger: Ledger) -> None:
    ordered(ledger)
    unsigned = AccountCreated(account="org/new", reason="somebody asked", by=Part.UNKNOWN)
    ledger.append(told(0, unsigned, id="unsigned"))
    do(ledger)
    do(ledger, GRACE)
    assert found(ledger, b"somebody asked") == ["side.texts.body"]


def test_an_append_under_way_ends_before_the_erasure_counts(booked: Ledger) -> None:
    erased: list[Erasure] = []
    with writing(booked.engine) as writer:
        append(writer, "alpha", run("w9", ADA, comment=SECRET), clock=booked.clock, calendar=booked.calendar)
        other = threading.Thread(target=lambda: erased.append(do(booked)))
        other.start()
        while not booked.rows("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            assert other.is_alive()
    other.join()
    assert (erased[0].rows, erased[0].texts) == (3, 4)
    assert found(booked, SECRET.encode(), ADA.encode()) == []
