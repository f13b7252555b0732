"""JSON Schema of every notice's payload, generated from the classes.

``python -m gpuledger.notify.schemas docs/notices`` writes them; a test compares the files with the code.
"""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from gpuledger.events.schemas import DIALECT, described
from gpuledger.notify.notices import CLASSES, Kind


def schema_of(kind: Kind) -> dict[str, Any]:
    """Return the JSON Schema of the payload of a kind of notice."""
    of = CLASSES[kind]
    (reference,), components = msgspec.json.schema_components([of], ref_template="#/$defs/{name}")
    data = described(components.pop(reference["$ref"].rpartition("/")[2]), of)
    schema: dict[str, Any] = {
        "$schema": DIALECT,
        "$id": f"urn:gpuledger:notice:{kind.value}:v1",
        "title": kind.value,
        "description": data.pop("description"),
        "type": "object",
        "properties": {
            "type": {"const": kind.value},
            "timestamp": {"type": "string", "format": "date-time", "description": "When it was noticed."},
            "data": data,
        },
        "required": ["type", "timestamp", "data"],
    }
    if components:
        schema["$defs"] = {name: described(node) for name, node in sorted(components.items())}
    return schema


def documents() -> dict[str, str]:
    """Return the text of every schema file by its name."""
    return {
        f"{kind.value}.v1.json": json.dumps(schema_of(kind), indent=2, ensure_ascii=False) + "\n"
        for kind in Kind
    }


def main(arguments: list[str]) -> int:
    """Write the schema files into the folder named on the command line."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m gpuledger.notify.schemas FOLDER\n")
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in documents().items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
