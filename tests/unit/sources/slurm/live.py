"""Pictures of a cluster's live state, and how the tests read them."""

from pathlib import Path
from typing import Any

from gpuledger.events.envelope import Event, decode
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

FIXTURES = Path(__file__).parents[3] / "fixtures/sources/slurm-live"

Items = list[Translated | Fault]


def read(name: str, file: str | Path, **options: Any) -> Items:  # noqa: ANN401
    """Read a fixture, or any other file, with a source."""
    path = FIXTURES / file if isinstance(file, str) else file
    return list(source(name).read(path, ImportOptions(**options)))


def read_text(name: str, tmp_path: Path, text: str | bytes, **options: Any) -> Items:  # noqa: ANN401
    path = tmp_path / "picture"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(name, path, **options)


def events(items: Items) -> list[Event]:
    """Return the facts of all records, each as it would come back from a stream."""
    found = []
    for item in items:
        assert isinstance(item, Translated), item
        for event, value in item.events:
            assert decode(value) == event
            found.append(event)
    return found


def one(items: Items) -> Translated:
    (item,) = items
    assert isinstance(item, Translated), item
    return item


def fault(items: Items) -> Fault:
    (found,) = [item for item in items if isinstance(item, Fault)]
    return found


def codes(items: Items) -> list[str]:
    """Return the anomalies of all records and the faults, in order."""
    return [
        code
        for item in items
        for code in ([item.code] if isinstance(item, Fault) else [odd.code for odd in item.anomalies])
    ]
