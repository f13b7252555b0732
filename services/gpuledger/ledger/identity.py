"""Erasable names: users are tokens in the journal, their keys live in the side store.

A token is an HMAC under a random key per user; erasing the key makes the token meaningless and the
stored digest of the user's events uncheckable, without touching the chain.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from gpuledger.database.engine import Writer
from gpuledger.events.envelope import Event
from gpuledger.events.registry import Fact
from gpuledger.ledger.copying import driver
from gpuledger.ledger.segments import NOBODY


class UserKey(NamedTuple):
    """A user's secret key and the token that stands for the name."""

    key: bytes
    token: str


def user_of(data: Fact) -> str | None:
    """Return the name of the person a fact speaks of, or None."""
    user: str | None = getattr(data, "user", None)
    return None if user == NOBODY else user


def user_keys(writer: Writer, events: Iterable[Event]) -> dict[str, UserKey]:
    """Return the keys of all users named by the events; unknown users get one."""
    names = sorted({name for event in events if (name := user_of(event.data)) is not None})
    if not names:
        return {}
    connection = driver(writer)
    fresh = [(name, key, _token(key, name)) for name in names for key in [secrets.token_bytes(32)]]
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO side.user_keys (name, key, token) VALUES (%s, %s, %s) ON CONFLICT (name) DO NOTHING",
            fresh,
        )
        cursor.execute("SELECT name, key, token FROM side.user_keys WHERE name = ANY(%s)", (names,))
        return {name: UserKey(bytes(key), token) for name, key, token in cursor}


def pseudonymous(event: Event, keys: Mapping[str, UserKey]) -> tuple[Fact, bytes]:
    """Return the fact with its user replaced by the token, and the digest the journal keeps.

    The digest of a body that names a person is keyed, so that the name cannot be guessed from it.
    """
    name = user_of(event.data)
    if name is None:
        return event.data, event.digest
    user = keys[name]
    fact = msgspec.structs.replace(event.data, user=user.token)
    return fact, hmac.digest(user.key, event.digest, "sha256")


def store_extra(writer: Writer, extra: Mapping[str, object]) -> bytes:
    """Put keys the schema does not know (they may hold free text) aside; return their salted reference."""
    body = msgspec.json.encode(extra, order="sorted")
    salt = secrets.token_bytes(16)
    ref = hashlib.sha256(salt + body).digest()
    driver(writer).execute("INSERT INTO side.texts (ref, salt, body) VALUES (%s, %s, %s)", (ref, salt, body))
    return ref


def _token(key: bytes, name: str) -> str:
    return "u-" + hmac.digest(key, name.encode(), "sha256").hex()[:20]
