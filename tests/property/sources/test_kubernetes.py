"""Whatever a stream of Kubernetes objects holds: facts or faults, nothing negative, nothing charged twice."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.unit.sources.kubernetes.building import admission, assignment, conditions, lines, pod_set, workload

from gpuledger.events.envelope import decode
from gpuledger.events.workload import WorkloadFact
from gpuledger.kernel.accounts import check_path
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant, iso
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.ledger.charges import PHYSICAL, desired
from gpuledger.ledger.facts import Known
from gpuledger.ledger.segments import derive
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

within = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
FIXTURES = Path(__file__).parents[2] / "fixtures/sources/kubernetes"
LINES = [line for path in sorted(FIXTURES.glob("*.ndjson")) for line in path.read_bytes().splitlines()]
BEGAN = 1_793_476_800

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=6) | st.sampled_from(
        ["True", "Failed", "2026-10-31T20:00:00Z", "0001-01-01T00:00:00Z", "1k", "0.5", "nvidia.com/gpu"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # noqa: ANN401
    """Return the way to every part of a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], part: Any) -> Any:  # noqa: ANN401
    if not path:
        return part
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = put(value[path[0]], path[1:], part)
    return changed


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A real line, with one part replaced, or with a few bytes changed."""
    raw = draw(st.sampled_from(LINES))
    if draw(st.booleans()):
        value = json.loads(raw)
        value = put(value, draw(st.sampled_from(places(value))), draw(anything))
        return json.dumps(value).encode()
    content = bytearray(raw)
    for _ in range(draw(st.integers(1, 3))):
        content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
    return bytes(content)


def check(name: str, items: list[Translated | Fault]) -> None:
    """Every fact can be read from a stream, every fault again from what it kept; no charge is below zero."""
    facts: dict[tuple[str, str], list[Known]] = defaultdict(list)
    for item in items:
        if isinstance(item, Fault):
            context = msgspec.json.decode(msgspec.json.encode(item.context))
            with pytest.raises(BadRecord) as caught:
                source(name).retry(item.raw, context)
            # How much memory a device has, and what a claim was given, is told before the pod and not by it.
            assert caught.value.code in {item.code, "partial-line", "unknown-share", "unknown-claim"}
            continue
        assert item.events
        for event, value in item.events:
            assert decode(value) == event
            if (account := getattr(event.data, "account", None)) is not None:
                check_path(account)
            if isinstance(event.data, WorkloadFact):
                named = (event.data.cluster, event.data.workload)
                facts[named].append(Known(event.data, event.at_s, event.source, event.digest))
    for known in facts.values():
        history = derive(known)
        assert history == derive(known[::-1])
        assert all(
            amount >= 0 for key, amount in desired(history, Calendar()).items() if key.commodity == PHYSICAL
        )


@within
@given(stream=st.lists(st.sampled_from(LINES) | mutated(), min_size=1, max_size=8))
def test_mutated_records_are_facts_or_faults(tmp_path: Path, stream: list[bytes]) -> None:
    path = tmp_path / "stream"
    path.write_bytes(b"".join(line.replace(b"\n", b" ") + b"\n" for line in [LINES[0], *stream]))
    check("pods", list(source("pods").read(path, ImportOptions())))


def is_json(path: Path) -> bool:
    """Say whether a document is JSON: numbers that are none, which Python writes, are not."""
    try:
        msgspec.json.decode(path.read_bytes())
    except msgspec.DecodeError:
        return False
    return True


@within
@example(value={"": float("inf")}, whole=True)
@given(value=anything, whole=st.booleans())
def test_arbitrary_documents_are_refused_or_faults(tmp_path: Path, value: object, *, whole: bool) -> None:
    path = tmp_path / "document"
    found = {"kind": "Node", "metadata": value} if whole else value
    path.write_text(json.dumps(found))
    for name in ("pods", "k8s-yaml"):
        try:
            check(name, list(source(name).read(path, ImportOptions())))
        except Refused:
            assert not isinstance(value, dict) or not whole or name == "k8s-yaml" or not is_json(path)


@within
@given(
    document=st.binary(max_size=200) | st.text(alphabet="ab:-[]{}&*!#'\"\n |>%@", max_size=80).map(str.encode)
)
def test_arbitrary_yaml_is_a_fault(tmp_path: Path, document: bytes) -> None:
    path = tmp_path / "document"
    path.write_bytes(b"kind: Node\n" + document)
    items = list(source("k8s-yaml").read(path, ImportOptions()))
    assert items
    check("k8s-yaml", items)


spans = st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 5000)), min_size=1, max_size=5)


def states(cycles: list[tuple[int, int]], *, counts: bool) -> tuple[list[dict[str, Any]], int]:
    """Return what a watch says of a workload that is admitted and evicted again and again, and for how long it ran."""
    given = admission(assignment("main", 1, 8, "h100"))
    sets = [pod_set("main", 1, 8)]
    found, at_s, ran_s = [workload("w", sets, {"conditions": []})], BEGAN, 0
    for number, (pause_s, lasts_s) in enumerate(cycles):
        at_s += pause_s
        evicted = {} if not number else {"Evicted": ("True", "Preempted", iso(instant(at_s - pause_s)))}
        past: dict[str, Any] = {"accumulatedPastExecutionTimeSeconds": ran_s} if number else {}
        if counts and number:
            past["schedulingStats"] = {
                "evictions": [{"reason": "Preempted", "underlyingCause": "", "count": number}]
            }
        began = conditions(Admitted=("True", "Admitted", iso(instant(at_s))), **evicted)
        found.append(workload("w", sets, {"conditions": began, "admission": given, **past}))
        at_s, ran_s = at_s + lasts_s, ran_s + lasts_s
        left = iso(instant(at_s))
        over = conditions(Admitted=("False", "NoReservation", left), Evicted=("True", "Preempted", left))
        past = {"accumulatedPastExecutionTimeSeconds": ran_s}
        if counts:
            past["schedulingStats"] = {
                "evictions": [{"reason": "Preempted", "underlyingCause": "", "count": number + 1}]
            }
        found.append(workload("w", sets, {"conditions": over, **past}))
    return found, ran_s


def gpu_seconds(items: list[Translated | Fault]) -> int:
    known = {
        (event.source, event.id): Known(event.data, event.at_s, event.source, event.digest)
        for item in items
        if isinstance(item, Translated)
        for event, _ in item.events
    }
    charged = desired(derive(known.values()), Calendar())
    return sum(amount for key, amount in charged.items() if key.commodity == PHYSICAL) // 1000


@within
@given(cycles=spans, counts=st.booleans())
def test_every_admission_is_charged_for_as_long_as_kueue_counted(
    tmp_path: Path, cycles: list[tuple[int, int]], *, counts: bool
) -> None:
    found, ran_s = states(cycles, counts=counts)
    (tmp_path / "s").write_bytes(lines(*found))
    items = list(source("kueue").read(tmp_path / "s", ImportOptions()))
    assert gpu_seconds(items) == 8 * ran_s
    assert not [one for item in items if isinstance(item, Translated) for one in item.anomalies]


@within
@given(cycles=spans, data=st.data())
def test_states_that_nobody_saw_never_charge_more_than_kueue_counted(
    tmp_path: Path, cycles: list[tuple[int, int]], data: st.DataObject
) -> None:
    found, ran_s = states(cycles, counts=True)
    seen = sorted(data.draw(st.sets(st.sampled_from(range(len(found))), min_size=1)) | {len(found) - 1})
    (tmp_path / "s").write_bytes(lines(*(found[index] for index in seen)))
    items = list(source("kueue").read(tmp_path / "s", ImportOptions()))
    missing = [
        one
        for item in items
        if isinstance(item, Translated)
        for one in item.anomalies
        if one.code == "history-missing"
    ]
    charged = gpu_seconds(items)
    assert charged <= 8 * (ran_s + len(cycles))
    if not missing:
        assert abs(charged - 8 * ran_s) <= 8 * len(cycles)
