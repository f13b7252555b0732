"""The published schema is that of the code, and describes what the code writes."""

import json
import re
from pathlib import Path

import jsonschema
import msgspec
from tests.unit.simulator.stories import in_order, left, scenario, started, submitted

from gpuledger.simulator import document_schema
from gpuledger.simulator.measures import measure
from gpuledger.simulator.summary import summarise


def test_the_file_is_that_of_the_code(repository: Path) -> None:
    path = repository / "docs/schemas" / document_schema.FILE
    assert path.read_text() == document_schema.text(), (
        "run: python -m gpuledger.simulator.document_schema docs/schemas"
    )


def test_every_key_is_described() -> None:
    schema = document_schema.schema()
    bare = [
        f"{name}.{key}"
        for name, node in {"Simulation": schema, **schema["$defs"]}.items()
        for key, of in node["properties"].items()
        if not of.get("description")
    ]
    assert bare == []


def test_a_report_is_as_the_schema_says() -> None:
    told = scenario()
    facts = in_order(
        submitted("j", 0, gpus=2), started("j", 40, {"h1": 2}), left("j", 7200), submitted("k", 9)
    )
    for given in ([], facts):
        report = summarise(measure(given, told), told, world="fifo", seed=1, wall_s=0.25)
        schema = json.loads(document_schema.text())
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(msgspec.to_builtins(report), schema)


def test_every_key_is_explained_on_the_page(repository: Path) -> None:
    """In the section of what is reported: the same word elsewhere on the page explains another thing."""
    page = (repository / "docs/simulator.md").read_text()
    _, _, rest = page.partition("\n## What is reported\n")
    section, found, _ = rest.partition("\n## The command\n")
    assert found
    explained = {
        word for text in re.findall(r"`([^`]+)`", section) for word in re.split(r"[^a-z0-9_]+", text)
    }
    schema = document_schema.schema()
    keys = {key for node in (schema, *schema["$defs"].values()) for key in node["properties"]}
    assert sorted(keys - explained) == []


def test_a_report_has_no_other_keys_and_lacks_none() -> None:
    schema = document_schema.schema()
    for node in (schema, *schema["$defs"].values()):
        assert sorted(node["required"]) == sorted(node["properties"])
    told = scenario()
    report = msgspec.to_builtins(summarise(measure([], told), told, world="fifo", seed=1, wall_s=0.25))
    assert report.keys() == schema["properties"].keys()
