"""Events from a file are taken as they are, by the rules of a stream."""

from pathlib import Path

import pytest
from tests.unit.sources.rows import one, only, read
from tests.unit.sources.traces import FIXTURES, facts, fixture

from gpuledger.events.envelope import decode, make
from gpuledger.events.host import Registered
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source

CORPUS = Path(__file__).parents[2] / "contract/events/corpus"


def told(cluster: str = "alpha") -> bytes:
    return make(
        id="h1", source="test", at_s=7, data=Registered(cluster=cluster, host="h", gpus=8, gpu_model="m")
    )[1]


def test_every_line_of_the_fixture_is_the_event_that_it_holds() -> None:
    items = facts(fixture("events", "events.ndjson"))
    content = (FIXTURES / "events/events.ndjson").read_bytes().splitlines()
    assert [item.events for item in items] == [((decode(line), line),) for line in content]
    assert {event.name for item in items for event, _ in item.events} >= {
        "budget.granted",
        "telemetry.sampled",
    }


def test_clusters_are_those_of_the_events(tmp_path: Path) -> None:
    items = facts(read("events", tmp_path / "e", told("west") + b"\n" + told("east") + b"\n"))
    assert [event.data.cluster for item in items for event, _ in item.events] == ["west", "east"]  # type: ignore[attr-defined]
    with pytest.raises(Refused, match="--cluster: each event names its own"):
        source("events").read(tmp_path / "e", ImportOptions(cluster="west"))


@pytest.mark.parametrize("content", [b"\xef\xbb\xbf%b\n", b"%b\r\n", b"\n\n  %b  \n", b"%b"])
def test_other_line_ends_and_marks_change_nothing(tmp_path: Path, content: bytes) -> None:
    ((event, value),) = one("events", tmp_path / "e", content % told()).events
    assert (event, value) == (decode(told()), told())


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", "not-an-event"),
        (b"not json", "not-an-event"),
        (told().replace(b"host.registered", b"host.invented"), "unknown-type"),
        (told().replace(b":8", b":-8"), "bad-field"),
        (told().replace(b"1970", b"2170"), "time-out-of-range"),
        (told("~org"), "reserved-name"),
        ((CORPUS / "decision.made.v1.ndjson").read_bytes().splitlines()[0], "own-type"),
        ((CORPUS / "period.closed.v1.ndjson").read_bytes().splitlines()[0], "own-type"),
    ],
)
def test_what_a_stream_would_refuse_is_a_dead_letter(tmp_path: Path, line: bytes, code: str) -> None:
    items = read("events", tmp_path / "e", told() + b"\n" + line + b"\n" + told("west") + b"\n")
    fault = only(items)
    assert (fault.line, fault.code, fault.raw) == (2, code, line)
    assert fault.hint
    assert len(items) == 3
    with pytest.raises(BadRecord) as caught:
        source("events").retry(fault.raw, fault.context)
    assert caught.value.code == code


def test_a_line_that_can_be_read_by_now_is_the_event(tmp_path: Path) -> None:
    fault = only(read("events", tmp_path / "e", b"{\n"))
    assert source("events").retry(told() + b"\r", fault.context).events == ((decode(told()), told()),)
