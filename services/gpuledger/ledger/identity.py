"""Erasable names: people are tokens in the journal, their keys and words live in the side store.

A token is an HMAC under a random key per person; erasing the key makes the token meaningless and the
stored digest of the person's own events uncheckable, without touching the chain. One person has one token, as the
owner of work and as the one who orders. What an order moves must count once for ever, whoever was erased
since: its digest is taken without the person (docs/decisions/0013).
"""

import hashlib
import hmac
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

import msgspec
from psycopg import Cursor

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.budget import Part, PolicyChanged, Word
from gpuledger.events.envelope import Event, encode, facts_by_kind
from gpuledger.events.mapping import MappingRule
from gpuledger.events.orders import Order, is_order
from gpuledger.events.registry import Fact
from gpuledger.events.words import ASIDE, apart, has_words
from gpuledger.ledger.copying import driver
from gpuledger.ledger.segments import NOBODY

Told = TypeVar("Told", bound=Order)

_PARTS = frozenset(part.value for part in Part)
_WORDS = frozenset(word.value for word in Word)


class UserKey(NamedTuple):
    """A person's secret key and the token that stands for the name."""

    key: bytes
    token: str


def person_of(data: Fact) -> str | None:
    """Return the name of the person a fact speaks of: whose work it is, or who ordered it; None for nobody."""
    field = _field_of_person(type(data))
    if field is None:
        return None
    name: str | None = getattr(data, field)
    return None if name == NOBODY or (field == "by" and name in _PARTS) else name


def persons(names: Iterable[str]) -> set[str]:
    """Return which of those who give orders are people; the others are parts of the program, or nobody."""
    return {name for name in names if name != NOBODY and name not in _PARTS}


@cache
def _field_of_person(kind: type[Fact]) -> str | None:
    """Return the field of a class of facts that names somebody: most classes have none, and every event is asked."""
    return next((field for field in ("by", "user") if field in kind.__struct_fields__), None)


def user_keys(writer: Writer, events: Collection[Event]) -> dict[str, UserKey]:
    """Return the keys of all people named by the events; unknown ones get one."""
    return keys_of(writer, people_of(events))


def keys_of(writer: Writer, people: Iterable[str]) -> dict[str, UserKey]:
    """Return the keys of people by name; unknown ones get one."""
    names = sorted(set(people))
    if not names:
        return {}
    with driver(writer).cursor() as cursor:
        # Held until the commit: nobody is erased between this look and the rows that are written with the key.
        cursor.execute("LOCK TABLE side.user_keys IN ROW EXCLUSIVE MODE")
        found = _known_keys(cursor, names)
        if fresh := [name for name in names if name not in found]:
            cursor.executemany(
                "INSERT INTO side.user_keys (name, key, token) VALUES (%s, %s, %s) ON CONFLICT (name) DO NOTHING",
                [(name, key, _token(key, name)) for name in fresh for key in [secrets.token_bytes(32)]],
            )
            found |= _known_keys(cursor, fresh)
        return found


def _known_keys(cursor: "Cursor[Any]", names: Sequence[str]) -> dict[str, UserKey]:
    cursor.execute("SELECT name, key, token FROM side.user_keys WHERE name = ANY(%s)", (names,))
    return {name: UserKey(bytes(key), token) for name, key, token in cursor}


def people_of(events: Collection[Event]) -> set[str]:
    """Return whom events speak of: their persons, and those whom rules name."""
    people: set[str] = set()
    for kind, facts in facts_by_kind(events).items():
        if _field_of_person(kind) is not None:
            people.update(name for fact in facts if (name := person_of(fact)) is not None)
        if issubclass(kind, PolicyChanged):
            named = (name for fact in facts for rule in fact.rules or () for name in rule.user)
            people.update(name for name in named if name != NOBODY)
    return people


def tokens_of(connection: Reader | Writer, names: Iterable[str]) -> dict[str, str]:
    """Return name -> token of people who are known."""
    rows = driver(connection).execute(
        "SELECT name, token FROM side.user_keys WHERE name = ANY(%s)", (sorted(set(names)),)
    )
    return dict(rows.fetchall())


def with_tokens(rules: Iterable[MappingRule], tokens: Mapping[str, str]) -> list[MappingRule]:
    """Return rules with a token in place of each person who has one."""
    return [
        msgspec.structs.replace(rule, user=tuple(sorted({tokens.get(name, name) for name in rule.user})))
        for rule in rules
    ]


def names_of(connection: Reader | Writer, tokens: Iterable[str | None]) -> dict[str | None, str]:
    """Return token -> name of people that are known; those who were erased, and what is no token, are absent."""
    asked = sorted({token for token in tokens if token is not None})
    rows = driver(connection).execute(
        "SELECT token, name FROM side.user_keys WHERE token = ANY(%s)", (asked,)
    )
    return dict(rows.fetchall())


def personal(connection: Reader | Writer, order: Told, texts: bytes | None) -> Told:
    """Return a journalled order with the name of who gave it and the words that were typed, while these are kept.

    Args:
        connection: A transaction.
        order: The order as the journal has it.
        texts: What its row keeps aside, if anything.
    """
    by = getattr(order, "by", None)
    reason = msgspec.json.decode(texts).get("reason") if texts is not None else None
    known = {"by": names_of(connection, [by]).get(by), "reason": reason}
    return msgspec.structs.replace(order, **{name: said for name, said in known.items() if said is not None})


def pseudonymous(event: Event, keys: Mapping[str, UserKey]) -> tuple[Fact, bytes]:
    """Return the fact with its person replaced by the token, and the digest the journal keeps.

    The digest of a workload's fact that names a person is keyed, so that the name cannot be guessed from it. That of
    an order leaves out who gave it and what that person typed, that of any other fact the words that no program gives:
    it is the same for ever.
    """
    data, name = event.data, person_of(event.data)
    if is_order(data):
        bare = impersonal(data)
        if bare == data:
            return data, event.digest
        fact = bare if name is None else msgspec.structs.replace(bare, by=keys[name].token)
        if isinstance(data, PolicyChanged) and data.rules:
            tokens = {person: key.token for person, key in keys.items()}
            fact = msgspec.structs.replace(fact, rules=with_tokens(data.rules, tokens))
        return fact, hashlib.sha256(_said(event, bare)).digest()
    fact, texts = apart(data)
    if name is None:
        return fact, hashlib.sha256(_said(event, fact)).digest() if texts else event.digest
    user = keys[name]
    return msgspec.structs.replace(fact, user=user.token), hmac.digest(user.key, event.digest, "sha256")


def impersonal(data: Fact) -> Fact:
    """Return an order without the people whom it names and without words of theirs; any other fact as it is."""
    if not is_order(data):
        return data
    by = data.by if person_of(data) is None else NOBODY
    bare = msgspec.structs.replace(data, by=by, reason=data.reason if _typed(data) is None else ASIDE)
    if isinstance(bare, PolicyChanged) and bare.rules:
        nameless = [msgspec.structs.replace(rule, user=(NOBODY,) * len(rule.user)) for rule in bare.rules]
        return msgspec.structs.replace(bare, rules=nameless)
    return bare


def store_texts(writer: Writer, event: Event) -> bytes | None:
    """Put an event's free text aside; return its salted reference, or None when there is none.

    Free text is what stands under keys that the schema does not know, the reason that a person typed, and the words
    that no program gives.
    """
    data, texts = event.data, event.extra
    if has_words(type(data)):
        texts = texts | apart(data)[1]
    if is_order(data) and (reason := _typed(data)) is not None:
        texts = texts | {"reason": reason}
    return put_aside(writer, texts) if texts else None


def put_aside(writer: Writer, texts: Mapping[str, Any]) -> bytes:
    """Keep free text in the side store; return its salted reference."""
    body = msgspec.json.encode(texts, order="sorted")
    salt = secrets.token_bytes(16)
    ref = hashlib.sha256(salt + body).digest()
    driver(writer).execute("INSERT INTO side.texts (ref, salt, body) VALUES (%s, %s, %s)", (ref, salt, body))
    return ref


def _said(event: Event, data: Fact) -> bytes:
    return encode(id=event.id, source=event.source, at_s=event.at_s, data=data)


def _typed(order: Order) -> str | None:
    return None if order.reason in _WORDS else order.reason


def _token(key: bytes, name: str) -> str:
    return "u-" + hmac.digest(key, name.encode(), "sha256").hex()[:20]
