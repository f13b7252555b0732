"""The published JSON Schemas are those of the code, and describe what the code writes."""

import json
from pathlib import Path

import jsonschema
import pytest

from gpuledger.events import envelope, schemas
from gpuledger.events.registry import names
from gpuledger.simulator import document_schema
from gpuledger.sources.protocol import ImportOptions, Translated
from gpuledger.sources.registry import source


def test_the_files_are_those_of_the_code(repository: Path) -> None:
    folder = repository / "docs" / "schemas"
    on_disk = {path.name: path.read_text() for path in folder.iterdir()}
    del on_disk[document_schema.FILE]  # of no event; its own test compares it
    assert on_disk == schemas.documents(), "run: python -m gpuledger.events.schemas docs/schemas"


@pytest.mark.parametrize("name", names())
def test_every_schema_is_valid(name: str) -> None:
    schema = schemas.schema_of(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:gpuledger:schema:{name}:v1"


def test_an_unknown_type_has_no_schema() -> None:
    with pytest.raises(KeyError):
        schemas.schema_of("workload.exploded")


def test_the_document_names_every_type_and_key(repository: Path) -> None:
    rows = {
        cells[1].strip(" `"): line
        for line in (repository / "docs" / "events.md").read_text().splitlines()
        if line.startswith("| `") and len(cells := line.split("|")) > 3
    }
    for name in names():
        schema = schemas.schema_of(name)
        assert name in rows, f"docs/events.md has no row for {name}"
        for key in schema["properties"]:
            optional = "" if key in schema["required"] else "?"
            assert f"`{key}{optional}`" in rows[name], f"docs/events.md: {name} lacks {key}{optional}"


def test_what_the_sources_write_fits_the_schemas(repository: Path) -> None:
    validators = {name: jsonschema.Draft202012Validator(schemas.schema_of(name)) for name in names()}
    outer = jsonschema.Draft202012Validator(json.loads(schemas.documents()["envelope.v1.json"]))
    path = repository / "services/gpuledger/demo/data/alex.csv.gz"
    for item in source("clustercockpit").read(path, ImportOptions()):
        assert isinstance(item, Translated)
        for event, value in item.events:
            outer.validate(json.loads(value))
            validators[event.name].validate(json.loads(value)["data"])
            assert envelope.decode(value) == event


def test_the_command_writes_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert schemas.main([str(tmp_path / "out")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(schemas.documents())
    assert schemas.main([]) == 2
