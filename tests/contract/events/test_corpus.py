"""Events as earlier versions wrote them, kept for ever: what was readable once stays readable (fault checklist 31).

A file ``TYPE.v1.ndjson`` holds events of one type and version, the least and the most that they can say;
``story.ndjson`` tells of a cluster over two days, ``story-holds.ndjson`` of what is set aside there and given back
in the days after, ``story-cycles.ndjson`` of all that a cycle and its amendment may say by now. Files are added,
never changed: a new version of a type gets a file of its own, and the old one goes through the upcasters.
"""

import hashlib
import json
from pathlib import Path

import pytest

from gpuledger.events.envelope import data_json, decode
from gpuledger.events.registry import names
from gpuledger.events.upcasting import lift, version_of

CORPUS = Path(__file__).with_name("corpus")
FILES = sorted(path.name for path in CORPUS.glob("*.ndjson"))


def test_every_version_of_every_type_is_in_the_corpus() -> None:
    wanted = {f"{name}.v{1 + step}.ndjson" for name in names() for step in range(version_of(name))}
    missing = sorted(wanted - set(FILES))
    assert not missing, f"add a file for each: {missing}"


def test_the_corpus_is_frozen() -> None:
    """A digest that differs says that history was rewritten to suit the code."""
    listed = dict(reversed(line.split()) for line in (CORPUS / "SHA256SUMS").read_text().splitlines())
    found = {name: hashlib.sha256((CORPUS / name).read_bytes()).hexdigest() for name in FILES}
    assert found == listed


@pytest.mark.parametrize("name", FILES)
def test_an_old_event_says_what_it_said(name: str) -> None:
    for line in (CORPUS / name).read_bytes().splitlines():
        said = json.loads(line)
        event = decode(line)
        assert (event.id, event.source) == (said["id"], said["source"])
        version = said["type"].rpartition(".v")[2]
        assert name == f"{event.name}.v{version}.ndjson" or name.startswith("story")
        assert event.extra == {}
        assert json.loads(data_json(event.data)) == json.loads(
            lift(event.name, int(version), json.dumps(said["data"]))
        )
        assert event.digest == hashlib.sha256(line).digest()
