"""JSON Schema of every event's data and of the envelope, generated from the classes.

``python -m gpuledger.events.schemas docs/schemas`` writes them; a test compares the files with the code.
"""

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from gpuledger.events.envelope import SCHEMA_ROOT, schema_urn, type_of
from gpuledger.events.registry import fact_type, names
from gpuledger.events.upcasting import version_of

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_ENTRY = re.compile(r"\n(?=\w)")
_ALIASES = {"klass": "class"}

_ENVELOPE: dict[str, Any] = {
    "$schema": DIALECT,
    "$id": SCHEMA_ROOT + "envelope:v1",
    "title": "CloudEvents 1.0 in structured JSON, as gpuledger reads and writes it",
    "type": "object",
    "properties": {
        "specversion": {"const": "1.0"},
        "id": {"type": "string", "minLength": 1},
        "source": {"type": "string", "minLength": 1},
        "type": {"enum": [type_of(name) for name in names()]},
        "time": {"type": "string", "format": "date-time"},
        "datacontenttype": {"type": "string"},
        "dataschema": {"type": ["string", "null"]},
        "subject": {"type": ["string", "null"]},
        "partitionkey": {"type": ["string", "null"]},
        "data": {"type": "object"},
    },
    "required": ["id", "source", "type", "time", "data"],
}


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema of the data of a type, such as ``workload.started``.

    Raises:
        KeyError: When the name is not a known type.
    """
    fact = fact_type(name)
    if fact is None:
        raise KeyError(name)
    (reference,), components = msgspec.json.schema_components([fact], ref_template="#/$defs/{name}")
    own = described(components.pop(reference["$ref"].rpartition("/")[2]), fact)
    schema = {"$schema": DIALECT, "$id": schema_urn(name), **own, "title": type_of(name)}
    if components:
        schema["$defs"] = {key: described(node) for key, node in sorted(components.items())}
    return schema


def documents() -> dict[str, str]:
    """Return the text of every schema file by its name."""
    schemas = {f"{name}.v{version_of(name)}.json": schema_of(name) for name in names()}
    schemas["envelope.v1.json"] = _ENVELOPE
    return {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in schemas.items()}


def write(folder: Path) -> list[Path]:
    """Write every schema file; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in sorted(documents().items()):
        path = folder / name
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def described(node: dict[str, Any], fact: type | None = None) -> dict[str, Any]:
    """Move what a docstring says about its arguments to the properties; Decimals are numbers.

    Args:
        node: The schema of an object, as msgspec makes it.
        fact: Its class, whose bases explain fields too.
    """
    described = {**node, "properties": {key: _plain(item) for key, item in node["properties"].items()}}
    texts = [node.get("description", "")]
    if fact is not None:
        texts += [inspect.getdoc(base) or "" for base in fact.__mro__[1:]]
    described["description"] = texts[0].partition("\n\nArgs:")[0]
    for text in texts:
        for field, meaning in _arguments(text):
            item = described["properties"].get(_ALIASES.get(field, field))
            if item is not None:
                item.setdefault("description", meaning)
    return described


def _arguments(docstring: str) -> Iterator[tuple[str, str]]:
    """Yield each argument that a docstring explains, its meaning on one line."""
    section = docstring.partition("\nArgs:\n")[2].partition("\n\n")[0]
    for entry in _ENTRY.split("\n" + inspect.cleandoc("\n" + section)):
        field, colon, meaning = entry.partition(":")
        if colon:
            yield field.strip(), " ".join(meaning.split())


def _plain(node: Any) -> Any:  # noqa: ANN401 - JSON is any
    if isinstance(node, dict):
        if node.get("format") == "decimal":
            return {"type": "number"}
        return {key: _plain(item) for key, item in node.items()}
    return [_plain(item) for item in node] if isinstance(node, list) else node


def main(arguments: list[str]) -> int:
    """Write the schema files into the folder named on the command line."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m gpuledger.events.schemas FOLDER\n")
        return 2
    for path in write(Path(arguments[0])):
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
