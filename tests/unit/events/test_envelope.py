"""The envelope: what goes in comes out, and what is broken is refused with a reason."""

import hashlib
import json
from contextlib import suppress
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.events import envelope
from gpuledger.events.budget import AccountCreated
from gpuledger.events.telemetry import GpuSample, Sampled
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import BadRecord

STARTED = Started(
    cluster="alpha", workload="8841", run="1", attempt=1, gpus_milli=8000, hosts=["h1"], klass="allocated"
)


def wire(**changes: object) -> bytes:
    message = {
        "specversion": "1.0",
        "id": "8841/started",
        "source": "trace/x",
        "type": "org.gpuledger.workload.started.v1",
        "time": "2017-10-09T07:01:55Z",
        "data": json.loads(envelope.data_json(STARTED)),
    }
    return json.dumps({**message, **changes}).encode()


def refusal(value: bytes) -> BadRecord:
    with pytest.raises(BadRecord) as caught:
        envelope.decode(value)
    assert caught.value.message
    return caught.value


def test_an_event_survives_the_way_to_the_stream_and_back() -> None:
    event, value = envelope.make(id="8841/started", source="trace/x", at_s=1_507_532_515, data=STARTED)
    assert envelope.decode(value) == event
    assert event.name == "workload.started"


def test_the_bytes_are_a_cloud_event_in_structured_json() -> None:
    _, value = envelope.make(id="8841/started", source="trace/x", at_s=1_507_532_515, data=STARTED)
    message = json.loads(value)
    assert message["specversion"] == "1.0"
    assert message["type"] == "org.gpuledger.workload.started.v1"
    assert message["time"] == "2017-10-09T07:01:55Z"
    assert message["subject"] == "workload/8841"
    assert message["partitionkey"] == "alpha"
    assert message["dataschema"] == "urn:gpuledger:schema:workload.started:v1"
    assert message["data"]["class"] == "allocated"
    assert "gpu_model" not in message["data"], "absent keys are left out"


def test_telemetry_is_keyed_by_host() -> None:
    sample = Sampled(cluster="alpha", host="h1", interval_s=60, gpus=[])
    assert envelope.key_of(sample) == "h1"
    assert envelope.subject_of(sample) == "host/h1"
    assert envelope.book_of(sample) == "alpha"


def test_keys_of_tomorrow_are_kept_and_not_interpreted() -> None:
    data = {**json.loads(envelope.data_json(STARTED)), "rack": {"row": 3}, "price": 1.25}
    event = envelope.decode(wire(data=data))
    assert event.extra == {"rack": {"row": 3}, "price": Decimal("1.25")}
    assert event.data == STARTED


def test_the_digest_is_taken_over_the_bytes_as_they_arrived() -> None:
    compact = wire()
    spaced = json.dumps(json.loads(compact), indent=1).encode()
    assert envelope.decode(compact).digest == hashlib.sha256(compact).digest()
    assert envelope.decode(spaced).digest == hashlib.sha256(spaced).digest()
    assert envelope.decode(spaced).data == envelope.decode(compact).data


def test_sub_second_times_are_floored_and_offsets_understood() -> None:
    assert envelope.decode(wire(time="2017-10-09T07:01:55.999Z")).at_s == 1_507_532_515
    assert envelope.decode(wire(time="2017-10-09T09:01:55+02:00")).at_s == 1_507_532_515


def test_types_that_nobody_knows_are_not_remembered() -> None:
    before = envelope._named.cache_info().currsize
    refusal(wire(type=f"org.gpuledger.workload.{'x' * 1000}.v1"))
    assert envelope._named.cache_info().currsize == before


@pytest.mark.parametrize(
    ("changes", "code", "told"),
    [
        ({"type": "org.gpuledger.workload.exploded.v1"}, "unknown-type", "exploded"),
        ({"type": "org.gpuledger.workload.started.v9"}, "unknown-type", "v9"),
        ({"type": "com.example.started"}, "unknown-type", "com.example"),
        ({"specversion": "0.3"}, "unknown-version", "0.3"),
        ({"time": "2017-10-09T07:01:55"}, "naive-time", "zone"),
        ({"time": "1969-12-31T23:59:59Z"}, "time-out-of-range", "1970"),
        ({"time": "2101-01-01T00:00:00Z"}, "time-out-of-range", "2100"),
        ({"time": "yesterday"}, "not-an-event", "time"),
        ({"id": ""}, "not-an-event", "id"),
        ({"id": None}, "not-an-event", "id"),
        ({"data": None}, "bad-field", "workload.started"),
        ({"data": {}}, "bad-field", "cluster"),
    ],
)
def test_a_broken_envelope_is_refused_with_a_reason(changes: dict[str, Any], code: str, told: str) -> None:
    error = refusal(wire(**changes))
    assert error.code == code
    assert told in error.message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gpus_milli", -1),
        ("gpus_milli", 1.5),
        ("gpus_milli", "8000"),
        ("gpus_milli", 2**60),
        ("run", ""),
        ("hosts", "h1"),
        ("class", "privileged"),
        ("workload", "x" * 2000),
    ],
)
def test_a_field_that_does_not_fit_is_named(field: str, value: object) -> None:
    error = refusal(wire(data={**json.loads(envelope.data_json(STARTED)), field: value}))
    assert error.code == "bad-field"
    assert field in error.message


def test_a_time_without_zone_inside_the_data_is_refused() -> None:
    data = {"cluster": "c", "workload": "w", "account": "c/a", "user": "u", "gpus_milli": 1}
    value = wire(
        type="org.gpuledger.workload.submitted.v1", data={**data, "eligible_at": "2017-10-09T07:01:55"}
    )
    assert "eligible_at" in refusal(value).message


@pytest.mark.parametrize(
    "value", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 100_000]
)
def test_bytes_that_are_no_event_are_refused(value: bytes) -> None:
    assert refusal(value).code == "not-an-event"


def test_deep_nesting_inside_the_data_is_refused() -> None:
    value = wire().replace(b'"cluster"', b'"deep":' + b"[" * 50_000 + b"]" * 50_000 + b',"cluster"', 1)
    assert refusal(value).code in {"bad-field", "not-an-event"}


def test_the_null_character_is_refused_and_its_spelling_is_not() -> None:
    data = json.loads(envelope.data_json(STARTED))
    assert refusal(wire(data={**data, "run": "a\0b"})).code == "null-character"
    assert refusal(wire(data={**data, "run": "a\\\0b"})).code == "null-character"
    spelled = envelope.decode(wire(data={**data, "run": r"a\u0000b"}))
    assert spelled.data.run == r"a\u0000b"  # type: ignore[attr-defined]


@pytest.mark.parametrize("measure", ['"NaN"', '"Infinity"', "1E+999", "1E-999999999", '"-sNaN"'])
def test_a_measure_that_is_no_number_is_refused(measure: str) -> None:
    data = f'{{"cluster":"c","host":"h","interval_s":60,"gpus":[{{"uuid":"g","gpu_util":{measure}}}]}}'
    value = wire(type="org.gpuledger.telemetry.sampled.v1", data=0).replace(
        b'"data": 0', b'"data":' + data.encode()
    )
    assert refusal(value).code == "bad-field"


def test_an_unknown_number_of_absurd_size_is_refused() -> None:
    assert refusal(wire().replace(b'"cluster"', b'"n":1E999999,"cluster"', 1)).code == "bad-field"


def test_decode_data_reads_what_data_json_wrote() -> None:
    assert envelope.decode_data("workload.started", envelope.data_json(STARTED)) == STARTED
    with pytest.raises(KeyError):
        envelope.decode_data("workload.exploded", b"{}")


names = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=30)
counts = st.integers(0, 2**53)
seconds = st.integers(0, 4_133_980_799)
percents = st.decimals(0, 100, places=3)
facts = st.one_of(
    st.builds(
        Submitted,
        cluster=names,
        workload=names,
        account=names,
        user=names,
        gpus_milli=counts,
        gpu_model=st.none() | names,
        priority=st.none() | st.integers(-(2**53), 2**53),
        eligible_at=st.none() | seconds.map(instant),
        clusters=st.none() | st.lists(names, max_size=3),
        resumable=st.none() | st.booleans(),
    ),
    st.builds(
        Started,
        cluster=names,
        workload=names,
        run=names,
        attempt=counts,
        gpus_milli=counts,
        hosts=st.lists(names, max_size=3),
        klass=st.sampled_from([None, "allocated", "unallocated"]),
    ),
    st.builds(Ended, cluster=names, workload=names, reason=names, run=st.none() | names),
    st.builds(
        Sampled,
        cluster=names,
        host=names,
        interval_s=st.integers(1, 2**40),
        gpus=st.lists(st.builds(GpuSample, uuid=names, gpu_util=st.none() | percents), max_size=3),
    ),
)


@given(names, names, seconds, facts)
def test_every_fact_round_trips(id_: str, source: str, at_s: int, data: msgspec.Struct) -> None:
    event, value = envelope.make(id=id_, source=source, at_s=at_s, data=data)
    again = envelope.decode(value)
    assert again == event
    assert envelope.encode(id=again.id, source=again.source, at_s=again.at_s, data=again.data) == value


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_read_or_refused(value: bytes) -> None:
    with pytest.raises(BadRecord):
        envelope.decode(value)


@given(st.data())
def test_a_flipped_byte_is_read_or_refused(data: st.DataObject) -> None:
    value = bytearray(wire())
    value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    with suppress(BadRecord):
        envelope.decode(bytes(value))


def test_a_fact_with_u0000_is_not_made_into_an_event() -> None:
    """The database could keep it, and never read it again."""
    with pytest.raises(BadRecord, match="U"):
        envelope.make(id="1", source="s", at_s=0, data=AccountCreated(account="a\0b"))
    assert envelope.make(id="1", source="s", at_s=0, data=AccountCreated(account="a\\u0000b"))


@pytest.mark.parametrize("at_s", [-1, 4_133_980_800, 2**63, -(2**63)])
def test_a_time_that_no_reader_would_take_is_not_made_into_an_event(at_s: int) -> None:
    with pytest.raises(BadRecord) as caught:
        envelope.make(id="1", source="s", at_s=at_s, data=STARTED)
    assert caught.value.code == "time-out-of-range"


def test_data_that_is_encoded_already_gives_the_same_bytes() -> None:
    said = envelope.data_json(STARTED)
    assert envelope.make(id="1", source="s", at_s=7, data=STARTED, said=said) == envelope.make(
        id="1", source="s", at_s=7, data=STARTED
    )
