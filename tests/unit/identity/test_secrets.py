"""A token's text proves itself, and nothing else does."""

import pytest

from gpuledger.identity import secrets
from gpuledger.identity.secrets import Shown


def test_what_was_made_is_proven_and_the_secret_is_not_kept() -> None:
    made = secrets.make()
    shown = secrets.read(made.text)
    assert shown == Shown(made.id, made.digest)
    assert secrets.is_proven(shown, made.digest)
    assert made.text.rpartition("_")[2].encode() not in made.digest
    assert secrets.make().text != made.text


def test_another_secret_or_no_token_is_not_proven() -> None:
    made, other = secrets.make(), secrets.make()
    shown = secrets.read(other.text)
    assert shown is not None
    assert not secrets.is_proven(shown, made.digest)
    assert not secrets.is_proven(shown, None)
    assert not secrets.is_proven(Shown("0" * 12, bytes(32)), None)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1],
        lambda text: text + "a",
        lambda text: text.upper(),
        lambda text: text.replace("gpl_", "gpk_"),
        lambda text: " " + text,
        lambda text: text + "\n",
        lambda _: "",
        lambda _: "gpl__",
        lambda _: "Bearer",
    ],
)
def test_what_has_not_the_form_is_no_token(change: "object") -> None:
    assert callable(change)
    assert secrets.read(change(secrets.make().text)) is None
