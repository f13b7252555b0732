"""The text of a token: ``gpl_ID_SECRET``. The ledger keeps the id and a digest of the secret, never the secret.

256 random bits cannot be guessed, so one SHA-256 is as good as a slow hash, which would be an invitation to keep the
API busy. The prefix lets scanners of repositories find a token that was published by mistake.
"""

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

PREFIX = "gpl"
_ID_BYTES, _SECRET_BYTES = 6, 32
_FORM = re.compile(rf"{PREFIX}_(?P<id>[0-9a-f]{{{2 * _ID_BYTES}}})_(?P<secret>[0-9A-Za-z_-]{{43}})")


class Made(NamedTuple):
    """A new token: what its owner is shown once, and what is kept."""

    text: str
    id: str
    digest: bytes


class Shown(NamedTuple):
    """What somebody shows: which token it claims to be, and the digest of its secret."""

    id: str
    digest: bytes


def make() -> Made:
    """Return a new random token."""
    identifier, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
    return Made(f"{PREFIX}_{identifier}_{secret}", identifier, _digest(secret))


def read(text: str) -> Shown | None:
    """Return what a text shows, or None when it has not the form of a token."""
    found = _FORM.fullmatch(text)
    return None if found is None else Shown(found["id"], _digest(found["secret"]))


def is_proven(shown: Shown, kept: bytes | None) -> bool:
    """Say whether a secret is the one kept; takes as long for a token that does not exist."""
    return hmac.compare_digest(shown.digest, kept or bytes(len(shown.digest))) and kept is not None


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
