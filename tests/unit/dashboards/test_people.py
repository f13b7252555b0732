"""The people of a demo, as whom its pages may be looked at."""

import json
from pathlib import Path

from gpuledger.client.outcomes import WhoAmI
from gpuledger.demo import people as demo
from gpuledger_dashboards import people

MAYA = {"key": "maya", "name": "Maya", "about": "leads", "attempt": "read", "token": "gpl_x"}


def test_nobody_without_a_file_or_with_one_of_something_else(tmp_path: Path) -> None:
    assert people.read(None) == []
    assert people.read(tmp_path / "none.json") == []
    (tmp_path / "other.json").write_text('{"a": 1}')
    assert people.read(tmp_path / "other.json") == []


def test_an_address_names_them_by_their_key(tmp_path: Path) -> None:
    file = tmp_path / "people.json"
    file.write_text(json.dumps([MAYA]))
    found = people.read(file)
    assert people.named(found, "maya") == people.Person(**MAYA)
    assert people.named(found, "nobody") is None
    assert people.named(found, None) is None


def test_the_demo_writes_what_the_pages_read(tmp_path: Path) -> None:
    file = tmp_path / "people.json"
    demo.keep(file, demo.people([]))
    assert [person.key for person in people.read(file)] == ["maya", "tomas", "ines", "omar"]


def test_how_far_somebody_reaches_in_words() -> None:
    me = WhoAmI(name="x", role="lead", rights=(), subtree="a/b", clusters=("c", "d"), token="t")
    assert people.scope(me) == "lead of a/b on c, d"
    anyone = WhoAmI(name="x", role="auditor", rights=(), subtree=None, clusters=(), token=None)
    assert people.scope(anyone) == "auditor of every account on every cluster"
