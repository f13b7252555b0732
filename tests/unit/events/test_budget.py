"""Policy data says which policy it is a version of, and has that policy's keys."""

import msgspec
import pytest

from gpuledger.events.budget import PolicyChanged


@pytest.mark.parametrize(
    "body",
    [
        b'{"policy":"organisation","timezone":"UTC","period":"month"}',
        b'{"policy":"organisation","timezone":"UTC","period":"month","by":"ada"}',
        b'{"policy":"rate_card","weights":{"h100":2000}}',
        b'{"policy":"mapping","rules":[]}',
        b'{"policy":"mapping","rules":[{"account":["ml-*"],"labels":{"qos":["high"]},"to":"org/a"}],"supersedes":4}',
    ],
)
def test_a_version_comes_back_as_it_was_written(body: bytes) -> None:
    assert msgspec.json.encode(msgspec.json.decode(body, type=PolicyChanged)) == body


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"policy":"organisation","timezone":"UTC"}', "policy organisation lacks period"),
        (b'{"policy":"rate_card"}', "policy rate_card lacks weights"),
        (b'{"policy":"rate_card","weights":{"h100":-1}}', "weights"),
        (b'{"policy":"mapping"}', "policy mapping lacks rules"),
        (b'{"policy":"mapping","rules":[{"kind":"batch"}]}', "kind"),
        (b'{"policy":"mapping","rules":[{"account":[""]}]}', "account"),
        (b'{"policy":"colour"}', "'colour' is none of organisation, rate_card, mapping"),
    ],
)
def test_a_version_without_its_keys_is_refused(body: bytes, expected: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=expected):
        msgspec.json.decode(body, type=PolicyChanged)
