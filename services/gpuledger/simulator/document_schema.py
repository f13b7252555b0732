"""The JSON Schema of a simulation's report, generated from its classes.

``python -m gpuledger.simulator.document_schema docs/schemas`` writes it; a test compares the file with the code.
"""

import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from gpuledger.events.schemas import DIALECT
from gpuledger.simulator import document

FILE = "simulation.v1.json"


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a report."""
    _, components = msgspec.json.schema_components([document.Simulation], ref_template="#/$defs/{name}")
    for name, node in components.items():
        _describe(getattr(document, name), node)
    own = components.pop(document.Simulation.__name__)
    return {
        "$schema": DIALECT,
        "$id": "urn:gpuledger:schema:simulation:v1",
        **own,
        "$defs": dict(sorted(components.items())),
    }


def text() -> str:
    """Return the text of the schema's file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _describe(kind: type, node: dict[str, Any]) -> None:
    """Move what a docstring says of its fields, and that of the class it builds on, to the fields."""
    node["description"] = (inspect.getdoc(kind) or "").partition("\n\nArgs:\n")[0]
    for base in kind.__mro__:
        for field, meaning in _arguments(inspect.getdoc(base) or ""):
            if field in node["properties"]:
                node["properties"][field].setdefault("description", meaning)


def _arguments(docstring: str) -> Iterator[tuple[str, str]]:
    lines = docstring.partition("\n\nArgs:\n")[2].replace("\n        ", " ")
    for line in lines.splitlines():
        field, colon, meaning = line.strip().partition(": ")
        if colon:
            yield field, meaning


if __name__ == "__main__":
    (Path(sys.argv[1]) / FILE).write_text(text(), encoding="utf-8")

__all__ = ["FILE", "schema", "text"]
