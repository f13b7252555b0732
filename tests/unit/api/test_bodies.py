"""A body is taken as it is said: no key that is not known, no value of another type, no name that does not print."""

import pytest
from pydantic import ValidationError

from gpuledger.api.bodies import Body, Name


class Asked(Body):
    name: Name
    count: int = 1


def test_what_is_said_is_taken() -> None:
    assert Asked.model_validate_json('{"name": "a/b", "count": 2}') == Asked(name="a/b", count=2)


@pytest.mark.parametrize(
    "said",
    ['{"name": "a", "role": "admin"}', '{"name": "a", "count": "2"}', '{"name": "a", "count": 1.5}', '{"name": ""}',
     '{"name": "a\\nb"}', '{"name": null}', '{"name": "a", "count": true}', "[]"],
)  # fmt: skip
def test_anything_else_is_not(said: str) -> None:
    with pytest.raises(ValidationError):
        Asked.model_validate_json(said)
