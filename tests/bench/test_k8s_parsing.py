"""How fast states of Kubernetes objects become facts, against msgspec reading the same bytes as plain JSON."""

from pathlib import Path

import msgspec
import pytest
import yaml
from tests.bench.parsing import turns
from tests.unit.sources.kubernetes.building import (
    Object,
    admission,
    assignment,
    bound,
    change,
    conditions,
    lines,
    node,
    pod,
    pod_set,
    terminated,
    workload,
)

from gpuledger.ingest.collector import relax_collector
from gpuledger.sources.lines import Line, read_lines
from gpuledger.sources.protocol import ImportOptions, Translated
from gpuledger.sources.registry import source

pytestmark = pytest.mark.bench

OBJECTS = {"short": 600, "full": 6_000}
STATES = 8
RATIO_MIN = 0.3
"""Of a bare read. A line is gone through three times: for its object, for the kind, for the fields that are read."""

PADDING = {"env": [{"name": f"SETTING_{number}", "value": "x" * 40} for number in range(60)]}
"""What real pods are full of, and nobody here reads."""

AT_20, AT_21, AT_22 = (f"2026-10-31T{hour}:00:00Z" for hour in (20, 21, 22))


def _padded(found: Object) -> Object:
    template = (
        found["spec"]["podSets"][0]["template"]["spec"] if "podSets" in found["spec"] else found["spec"]
    )
    template["containers"][0] |= PADDING
    return found


def _workloads(count: int) -> list[Object]:
    given = admission(assignment("main", 1, 8, "h100"))
    began, over = ("True", "Admitted", AT_20), ("True", "Succeeded", AT_22)
    found = []
    for number in range(count):
        stories = [{"conditions": []}]
        stories += [{"conditions": conditions(Admitted=began), "admission": given}] * (STATES - 2)
        stories += [{"conditions": conditions(Admitted=began, Finished=over), "admission": given}]
        for story in stories:
            whole = _padded(workload(f"job-{number}", [pod_set("main", 1, 8)], story))
            whole["metadata"]["uid"] = f"uid-{number}"
            found.append(change("MODIFIED", whole))
    return found


def _pods(count: int) -> list[Object]:
    found = []
    for number in range(count):
        stories = [{"phase": "Pending"}, *[bound(AT_20)] * (STATES - 2)]
        stories += [bound(AT_20, "Succeeded", containerStatuses=[terminated(AT_21)])]
        for story in stories:
            bound_to = None if story["phase"] == "Pending" else "node-1"
            whole = _padded(pod(f"pod-{number}", 1, story, node=bound_to))
            whole["metadata"]["uid"] = f"uid-{number}"
            found.append(change("MODIFIED", whole))
    return found


def _whole(name: str, path: Path) -> int:
    items = list(source(name).read(path, ImportOptions()))
    assert all(isinstance(item, Translated) for item in items)
    return len(items)


def _bare(path: Path) -> None:
    for line in read_lines(path):
        assert isinstance(line, Line)
        msgspec.json.decode(line.raw)


@pytest.mark.parametrize(("name", "made"), [("kueue", _workloads), ("pods", _pods)])
def test_a_stream_is_read_at_a_part_of_the_speed_of_plain_json(
    tmp_path: Path, name: str, made: object, test_form: str
) -> None:
    relax_collector()
    assert callable(made)
    path = tmp_path / "stream.ndjson"
    path.write_bytes(lines(*made(OBJECTS[test_form])))

    def whole() -> int:
        return _whole(name, path)

    states = whole()
    ratio, rate = turns(states, lambda: _bare(path), whole)
    print(
        f"\n{name}: {rate:,.0f} states/s of {path.stat().st_size / states / 1024:.1f} KiB; ratio {ratio:.2f}"
    )
    assert ratio >= RATIO_MIN


def test_yaml_is_read_at_a_part_of_the_speed_of_plain_yaml(tmp_path: Path, test_form: str) -> None:
    relax_collector()
    path = tmp_path / "nodes.yaml"
    nodes = [node(f"node-{number}") for number in range(OBJECTS[test_form])]
    path.write_text(yaml.dump_all(nodes, Dumper=yaml.CSafeDumper))

    def bare() -> int:
        return sum(1 for _ in yaml.load_all(path.read_bytes(), yaml.CSafeLoader))

    ratio, rate = turns(bare(), bare, lambda: _whole("k8s-yaml", path))
    print(f"\nk8s-yaml: {rate:,.0f} objects/s; ratio {ratio:.2f}")
    assert ratio >= RATIO_MIN
