"""Tokens for people, and texts kept aside."""

import hashlib
import hmac
import threading

from tests.integration.ledger.books import Ledger, ended, started, submitted, told

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import ShareSet, Word
from gpuledger.ledger.identity import names_of, pseudonymous, store_texts, user_keys
from gpuledger.ledger.segments import NOBODY


def test_a_user_keeps_one_token_over_all_books_and_batches(ledger: Ledger) -> None:
    events = [told(0, submitted()), told(0, submitted(cluster="beta")), told(1, started(user="ada"))]
    with writing(ledger.engine) as writer:
        first = user_keys(writer, events)
    with writing(ledger.engine) as writer:
        again = user_keys(writer, [*events, told(0, submitted(user="grace"))])
    assert first["ada"] == again["ada"]
    assert again["ada"].token != again["grace"].token


def test_who_runs_work_and_gives_orders_has_one_token(ledger: Ledger) -> None:
    ledger.append(told(0, submitted(user="ada")))
    ledger.append(told(0, ShareSet(account="org/a", share=1, reason=Word.BUDGET_FILE, by="ada")))
    tokens = ledger.rows("SELECT body->>'user', body->>'by' FROM ledger.journal ORDER BY book")
    token = ledger.value("SELECT token FROM side.user_keys")
    assert tokens == [(token, None), (None, token)]


def test_two_ledgers_give_one_name_two_tokens(ledger: Ledger) -> None:
    tokens = set()
    for _ in range(2):
        with ledger.trial() as connection:
            tokens.add(user_keys(connection, [told(0, submitted())])["ada"].token)  # type: ignore[arg-type]
    assert len(tokens) == 2


def test_writers_that_meet_a_user_at_once_agree_on_the_token(ledger: Ledger) -> None:
    found = []

    def meet() -> None:
        with writing(ledger.engine) as writer:
            found.append(user_keys(writer, [told(0, submitted(user=name)) for name in ("x", "y", "z")]))

    threads = [threading.Thread(target=meet) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(keys == found[0] for keys in found)


def test_a_fact_that_names_nobody_is_left_as_it_is(ledger: Ledger) -> None:
    event = told(0, ended())
    with writing(ledger.engine) as writer:
        assert user_keys(writer, [event, told(0, submitted(user=NOBODY))]) == {}
    assert pseudonymous(event, {}) == (event.data, event.digest)


def test_a_fact_that_names_a_person_gets_the_token_and_a_keyed_digest(ledger: Ledger) -> None:
    event = told(0, submitted())
    with writing(ledger.engine) as writer:
        keys = user_keys(writer, [event])
    fact, digest = pseudonymous(event, keys)
    assert fact == submitted(user=keys["ada"].token)
    assert digest == hmac.digest(keys["ada"].key, event.digest, "sha256")


def test_a_token_leads_to_the_name_while_it_is_known(ledger: Ledger) -> None:
    ledger.append(told(0, submitted(user="ada")), told(0, submitted("w2", user="grace")))
    tokens = dict(ledger.rows("SELECT name, token FROM side.user_keys"))
    ledger.change("DELETE FROM side.user_keys WHERE name = 'grace'")
    with reading(ledger.engine) as reader:
        assert names_of(reader, [*tokens.values(), "ingest", None]) == {tokens["ada"]: "ada"}


def test_the_reference_of_a_text_is_salted(ledger: Ledger) -> None:
    event = told(0, submitted(), name="x")
    with writing(ledger.engine) as writer:
        one, other = store_texts(writer, event), store_texts(writer, event)
    assert one != other
    rows = ledger.rows("SELECT ref, salt, body FROM side.texts")
    assert all(hashlib.sha256(bytes(salt) + bytes(body)).digest() == bytes(ref) for ref, salt, body in rows)


def test_the_reason_of_an_order_is_kept_with_what_else_it_said(ledger: Ledger) -> None:
    order = ShareSet(account="org/a", share=1, reason="she asked", by="ada")
    ledger.append(told(0, order, id="x", ticket="T-1"))
    (row,) = ledger.rows(
        "SELECT j.body->>'reason', t.body FROM ledger.journal AS j JOIN side.texts AS t ON ref = extra_ref"
    )
    assert (row[0], bytes(row[1])) == ("(aside)", b'{"reason":"she asked","ticket":"T-1"}')


def test_the_word_of_a_program_stays_in_the_journal_and_nothing_is_kept_aside(ledger: Ledger) -> None:
    ledger.append(told(0, ShareSet(account="org/a", share=1, reason="budget-file", by="ada")))
    assert ledger.rows("SELECT body->>'reason', extra_ref FROM ledger.journal") == [("budget-file", None)]
    assert ledger.value("SELECT count(*) FROM side.texts") == 0
