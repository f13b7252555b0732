"""Tokens for people, and texts kept aside."""

import hashlib
import hmac
import threading

from tests.integration.ledger.books import Ledger, ended, started, submitted, told

from gpuledger.database.engine import writing
from gpuledger.ledger.identity import pseudonymous, store_extra, user_keys, user_of
from gpuledger.ledger.segments import NOBODY


def test_a_user_keeps_one_token_over_all_books_and_batches(ledger: Ledger) -> None:
    events = [told(0, submitted()), told(0, submitted(cluster="beta")), told(1, started(user="ada"))]
    with writing(ledger.engine) as writer:
        first = user_keys(writer, events)
    with writing(ledger.engine) as writer:
        again = user_keys(writer, [*events, told(0, submitted(user="grace"))])
    assert first["ada"] == again["ada"]
    assert again["ada"].token != again["grace"].token


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
    assert user_of(submitted(user=NOBODY)) is None


def test_a_fact_that_names_a_person_gets_the_token_and_a_keyed_digest(ledger: Ledger) -> None:
    event = told(0, submitted())
    with writing(ledger.engine) as writer:
        keys = user_keys(writer, [event])
    fact, digest = pseudonymous(event, keys)
    assert fact == submitted(user=keys["ada"].token)
    assert digest == hmac.digest(keys["ada"].key, event.digest, "sha256")


def test_the_reference_of_a_text_is_salted(ledger: Ledger) -> None:
    with writing(ledger.engine) as writer:
        one, other = store_extra(writer, {"name": "x"}), store_extra(writer, {"name": "x"})
    assert one != other
    rows = ledger.rows("SELECT ref, salt, body FROM side.texts")
    assert all(hashlib.sha256(bytes(salt) + bytes(body)).digest() == bytes(ref) for ref, salt, body in rows)
