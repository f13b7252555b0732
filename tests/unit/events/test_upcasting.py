"""Old versions of a type, with steps as a later gpuledger would have them."""

import json
from typing import Any

import msgspec
import pytest

from gpuledger.events import envelope, upcasting
from gpuledger.events.envelope import data_json, decode, decode_data, encode, journal_json
from gpuledger.events.host import Retired
from gpuledger.events.schemas import documents
from gpuledger.kernel.errors import BadRecord

NAME = "host.retired"
NOW = Retired(cluster="c", host="h", gpus=8, gpu_model="H100")
FIRST = {"cluster": "c", "node": "h", "count": 8}
SECOND = {"cluster": "c", "host": "h", "count": 8, "gpu_model": "H100"}


def second(data: dict[str, Any]) -> dict[str, Any]:
    """A node became a host, and got a model."""
    return {"host": data.pop("node"), "gpu_model": "H100", **data}


def third(data: dict[str, Any]) -> dict[str, Any]:
    """What is counted is named."""
    return {"gpus": data.pop("count"), **data}


@pytest.fixture
def three_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upcasting, "STEPS", {NAME: (second, third)})
    monkeypatch.setattr(envelope, "_forms", {})  # what was encoded before or after is of the versions of then


def wire(version: int, data: dict[str, Any]) -> bytes:
    said = {
        "id": "1",
        "source": "s",
        "type": f"org.gpuledger.{NAME}.v{version}",
        "time": "2026-01-01T00:00:00Z",
    }
    return json.dumps({**said, "data": data}).encode()


@pytest.mark.usefixtures("three_versions")
@pytest.mark.parametrize(("version", "data"), [(1, FIRST), (2, SECOND), (3, json.loads(data_json(NOW)))])
def test_every_version_says_the_same_today(version: int, data: dict[str, Any]) -> None:
    event = decode(wire(version, {**data, "note": "kept"}))
    assert event.data == NOW
    assert event.extra == {"note": "kept"}


@pytest.mark.usefixtures("three_versions")
@pytest.mark.parametrize(
    "body", [FIRST, {"schema_version": 2, **SECOND}, json.loads(data_json(NOW)) | {"schema_version": 3}]
)
def test_every_journalled_version_is_read(body: dict[str, Any]) -> None:
    assert decode_data(NAME, json.dumps(body)) == NOW


@pytest.mark.usefixtures("three_versions")
def test_what_is_written_is_of_todays_version() -> None:
    assert json.loads(journal_json(NOW)) == {"schema_version": 3, **json.loads(data_json(NOW))}
    assert decode_data(NAME, journal_json(NOW)) == NOW
    said = json.loads(encode(id="1", source="s", at_s=0, data=NOW))
    assert (said["type"], said["dataschema"]) == (
        f"org.gpuledger.{NAME}.v3",
        f"urn:gpuledger:schema:{NAME}:v3",
    )
    assert f"{NAME}.v3.json" in documents()
    assert f"{NAME}.v1.json" not in documents()


@pytest.mark.usefixtures("three_versions")
def test_the_digest_is_that_of_the_bytes_as_they_arrived() -> None:
    assert decode(wire(1, FIRST)).digest != decode(wire(2, SECOND)).digest


def test_the_first_version_is_journalled_as_it_always_was() -> None:
    assert journal_json(NOW) == data_json(NOW)
    assert upcasting.version_of(NAME) == 1


@pytest.mark.usefixtures("three_versions")
@pytest.mark.parametrize("written", ["v4", "v0", "v01", "v", "v1.v1", "v1 ", "V1"])
def test_a_version_that_is_not_known_is_a_dead_letter(written: str) -> None:
    value = wire(1, FIRST).replace(b"retired.v1", f"retired.{written}".encode())
    with pytest.raises(BadRecord, match="is not a known event type") as caught:
        decode(value)
    assert caught.value.code == "unknown-type"


@pytest.mark.usefixtures("three_versions")
@pytest.mark.parametrize("version", [4, 0, "2", None])
def test_a_row_of_a_newer_version_is_not_misread(version: object) -> None:
    with pytest.raises(msgspec.ValidationError, match="written by a newer gpuledger"):
        decode_data(NAME, json.dumps({"schema_version": version, **FIRST}))
