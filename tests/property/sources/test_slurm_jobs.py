"""Records of Slurm jobs: whatever is done to them, they are facts or faults; in any order and form, one history."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.sources.slurm.told import (
    FORMATS,
    HOUR,
    T,
    Told,
    accounting,
    completion,
    controller,
    document,
    gpu_seconds,
    histories,
    read,
    row,
    understood,
    written,
)

from gpuledger.events import workload as facts
from gpuledger.events.envelope import Event, decode
from gpuledger.kernel.accounts import check_path
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.protocol import Fault, ImportOptions, KnownRun, Translated
from gpuledger.sources.registry import source
from gpuledger.sources.slurm.states import BASES, FLAGS

few = settings(
    max_examples=max(1, settings.default.max_examples // 2),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

odd_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0, -1, T, T + 60, 4294967294, 4294967295, 2**64 - 2]),
    st.sampled_from(
        ["", "None", "Unknown", "gres/gpu=8", "n[1-9]", "RUNNING", "2026-10-31T22:00:00", "0-9%3"]
    ),
    st.text(max_size=8),
    st.lists(st.text(max_size=4), max_size=3),
    st.fixed_dictionaries({"set": st.booleans(), "number": st.integers(-10, 2**65)}),
)
states = st.sampled_from([*BASES, *FLAGS])
tres = st.sampled_from(
    [None, "", "cpu=1", "gres/gpu=8", "gres/gpu:a=2,gres/gpu=2", "gres/gpu:1g.10gb=3", "gres/shard=4"]
)
moments = st.none() | st.integers(T - HOUR, T + 99 * HOUR)
runs = st.builds(
    Told,
    job=st.integers(1, 3),
    array=st.sampled_from([None, 7]),
    task=st.sampled_from([None, 0, 3]),
    state=states,
    submit=st.integers(T - HOUR, T + HOUR),
    start=moments,
    end=moments,
    elapsed=st.integers(0, 5 * HOUR),
    suspended=st.integers(0, 600),
    tres=tres,
    asked=tres,
    account=st.sampled_from(["prog-a", "Prog-A", "", "ü/x", "a" * 200]),
    nodes=st.sampled_from(["n1", "n[01-03]", "n[1-", "None assigned"]),
)


def check(items: Sequence[Translated | Fault], name: str) -> None:
    """Facts can be read back and charge nothing below zero; a fault says where, and a retry says the same."""
    events: list[Event] = []
    for item in items:
        if isinstance(item, Fault):
            assert f":{item.line}: " in item.message
            context = json.loads(json.dumps(item.context))
            with pytest.raises(BadRecord) as caught:
                source(name).retry(item.raw, context)
            assert caught.value.code in {item.code, "partial-line"}
            continue
        for event, value in item.events:
            assert decode(value) == event
            if (account := getattr(event.data, "account", None)) is not None:
                check_path(account)
            events.append(event)
    for history in histories(events).values():
        assert all(s.gpus_milli > 0 and (s.to_s is None or s.to_s > s.from_s) for s in history.segments)
        assert all(w.to_s is None or w.to_s > w.from_s for w in history.waits)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # noqa: ANN401
    """Every place in a JSON value that holds something."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return (
        [path, *(place for key, each in inner for place in places(each, (*path, key)))]
        if path
        else [place for key, each in inner for place in places(each, (key,))]
    )


def changed(record: dict[str, Any], place: tuple[Any, ...], value: object) -> dict[str, Any]:
    copy = json.loads(json.dumps(record))
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return copy


@pytest.mark.parametrize(
    ("name", "form"),
    [("slurm-sacct-json", accounting), ("slurmrestd", controller), ("slurm-jobcomp", completion)],
)
@few
@given(data=st.data())
def test_a_record_with_anything_anywhere_is_facts_or_a_fault(
    tmp_path: Path,
    name: str,
    form: Callable[[Told], dict[str, Any]],
    data: st.DataObject,
) -> None:
    record = form(Told(array=4700, task=3, state=data.draw(states)))
    for _ in range(data.draw(st.integers(1, 3))):
        with suppress(KeyError, TypeError, IndexError):  # an earlier change took the place away
            record = changed(record, data.draw(st.sampled_from(places(form(Told())))), data.draw(odd_values))
    try:
        content = json.dumps(record).encode() if name == "slurm-jobcomp" else document(record)
    except UnicodeEncodeError:
        return
    check(read(name, tmp_path, content, ImportOptions(fractions={"shard": 125})), name)


@few
@given(data=st.data())
def test_a_row_with_anything_in_a_cell_is_facts_or_a_fault(tmp_path: Path, data: st.DataObject) -> None:
    cells = row(Told(state=data.draw(states)))
    for _ in range(data.draw(st.integers(1, 3))):
        column = data.draw(st.sampled_from(sorted(cells)))
        cells[column] = str(data.draw(odd_values))
    lines = "|".join(cells) + "\n" + "|".join(cells.values()) + "\n" + "|".join(row(Told(job=9)).values())
    items = read("slurm-sacct-text", tmp_path, lines.encode(errors="surrogatepass"))
    check(items, "slurm-sacct-text")


@pytest.mark.parametrize("name", FORMATS)
@few
@given(told=st.lists(runs, min_size=1, max_size=4))
def test_any_runs_in_any_state_are_facts_or_faults(tmp_path: Path, name: str, told: list[Told]) -> None:
    check(read(name, tmp_path, written(name, *told)), name)


class Remembering:
    """A ledger: it takes events, and tells the runs that follow from them."""

    def __init__(self) -> None:
        self.events: dict[tuple[str, str], Event] = {}

    def take(self, events: Sequence[Event]) -> None:
        self.events.update({(e.source, e.id): e for e in events})

    def of(self, cluster: str, jobs: Collection[str]) -> Mapping[str, Sequence[KnownRun]]:
        ends: dict[tuple[str, str], int] = {}
        for event in self.events.values():
            if isinstance(event.data, facts.Stopped) and event.data.run is not None:
                ends[event.data.workload, event.data.run] = event.at_s
        found: defaultdict[str, set[KnownRun]] = defaultdict(set)
        for event in self.events.values():
            data = event.data
            job = getattr(data, "workload", "").partition("-")[0]
            if isinstance(data, facts.Submitted) and data.cluster == cluster and job in jobs:
                found[job].add(
                    KnownRun(data.workload, event.at_s, ends.get((data.workload, str(event.at_s))))
                )
        return {job: sorted(known) for job, known in found.items()}


def lives() -> list[Told]:
    """A job that was preempted, failed with its host, and completed; and its number, years before."""
    end = [T + 5000, T + 9000, T + 20_000]
    return [
        Told(submit=T - 9000 * HOUR, start=T - 9000 * HOUR, end=T - 8999 * HOUR, account="prog-z"),
        Told(state="PREEMPTED", end=end[0], tres="gres/gpu=2"),
        Told(state="NODE_FAIL", submit=end[0], start=end[0] + 60, end=end[1], tres="gres/gpu=2", restarts=1),
        Told(submit=end[1] + 45, start=end[1] + 99, end=end[2], tres="gres/gpu=2", restarts=2),
    ]


WANT = [8 * HOUR, 2 * (3200 + 3940 + 10_901)]


@few
@given(
    tellings=st.permutations([(name, n) for name in FORMATS for n in range(4)]),
    again=st.lists(st.tuples(st.sampled_from(FORMATS), st.integers(0, 3)), max_size=4),
)
def test_in_any_order_and_form_each_run_is_charged_once(
    tmp_path: Path, tellings: list[tuple[str, int]], again: list[tuple[str, int]]
) -> None:
    ledger = Remembering()
    for name, n in [*tellings, *again]:
        ledger.take(understood(read(name, tmp_path, written(name, lives()[n]), ImportOptions(known=ledger))))
    charged = gpu_seconds(ledger.events.values())
    assert sum(charged.values()) == sum(WANT)
    segments = [s for h in histories(ledger.events.values()).values() for s in h.segments]
    assert len({s.run for s in segments}) == len(segments) == 4


@pytest.mark.parametrize("name", FORMATS)
@given(order=st.permutations(range(4)))
@few
def test_the_runs_of_one_file_are_one_workload_in_any_order(
    tmp_path: Path, name: str, order: list[int]
) -> None:
    told = [lives()[n] for n in order]
    assert sorted(gpu_seconds(understood(read(name, tmp_path, written(name, *told)))).values()) == WANT
