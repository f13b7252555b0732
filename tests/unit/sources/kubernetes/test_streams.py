import gzip
import json
from pathlib import Path

import pytest
from tests.unit.sources.kubernetes.building import Object, bound, lines, node, pod

from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

PODS = [pod(f"p{number}", 1, bound("2026-10-31T20:05:00Z")) for number in range(3)]


def ids(path: Path, name: str = "pods") -> list[str]:
    items = list(source(name).read(path, ImportOptions()))
    assert all(isinstance(item, Translated) for item in items), items
    return [event.id for item in items if isinstance(item, Translated) for event, _ in item.events]


def without_kind(found: Object) -> Object:
    return {key: value for key, value in found.items() if key not in {"kind", "apiVersion"}}


def test_a_stream_and_lists_of_every_form_hold_the_same_facts(tmp_path: Path) -> None:
    kubectl = {"apiVersion": "v1", "kind": "List", "items": PODS}
    api = {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "7"},
        "items": [*map(without_kind, PODS)],
    }
    forms = {
        "stream": lines(*PODS),
        "mark": b"\xef\xbb\xbf" + lines(*PODS),
        "gzip": gzip.compress(lines(*PODS)),
        "kubectl": json.dumps(kubectl, indent=4).encode(),
        "one-line": json.dumps(kubectl).encode(),
        "api": json.dumps(api).encode(),
        "api-printed": json.dumps(api, indent=1).encode(),
    }
    found = set()
    for form, content in forms.items():
        (tmp_path / form).write_bytes(content)
        found.add(tuple(ids(tmp_path / form)))
    (only,) = found
    assert len(only) == 6


@pytest.mark.parametrize("name", ["kai", "kueue", "pods"])
def test_the_name_makes_no_difference(tmp_path: Path, name: str) -> None:
    (tmp_path / "s").write_bytes(lines(node("node-1"), *PODS))
    assert ids(tmp_path / "s", name) == ids(tmp_path / "s")


@pytest.mark.parametrize(
    "content",
    [b"sn,cpu_milli\n1,2\n", b"{}\n", b"[1, 2]\n", b'{"items": []}', b'{"a": 1}\n{"b": 2}\n', b"\x00\x01"],
)
def test_what_is_no_stream_of_objects_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(Refused):
        source("pods").read(tmp_path / "f", ImportOptions())


def test_objects_printed_one_after_another_are_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\n".join(json.dumps(p, indent=4).encode() for p in PODS))
    with pytest.raises(Refused) as refused:
        source("pods").read(tmp_path / "f", ImportOptions())
    assert "jq -c" in refused.value.hint or "cut short" in refused.value.hint


def test_a_first_line_that_is_cut_does_not_refuse_the_rest(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(lines(*PODS)[20:])
    first, *rest = source("pods").read(tmp_path / "f", ImportOptions())
    assert isinstance(first, Fault)
    assert first.code == "not-an-object"
    assert len(rest) == 2


def test_the_size_is_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"123")
    assert source("pods").size(tmp_path / "f") == 3
