"""Law 7: whatever bytes a stream brings, each record is an event or a dead letter with its place, and none is lost."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.integration.ingest.test_worker import job

from gpuledger.ingest.worker import read
from gpuledger.streams.protocol import Record
from gpuledger.streams.topics import SCHEDULER_EVENTS

many = settings(max_examples=3 * settings().max_examples, deadline=None)
whole = st.sampled_from(job("a") + job("b"))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """An event with some bytes replaced, cut off or put in."""
    value = bytearray(draw(whole))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(value)))
        value[at : at + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
    return bytes(value)


values = st.lists(st.one_of(whole, damaged(), st.binary(max_size=60), st.text().map(str.encode)), max_size=12)


@many
@given(values)
def test_each_record_is_an_event_or_a_dead_letter_with_its_place(told: list[bytes]) -> None:
    records = [Record(SCHEDULER_EVENTS, 0, 7 + n, value) for n, value in enumerate(told)]
    events, letters = read(records)
    assert len(events) + len(letters) == len(records)
    good = set(job("a") + job("b"))
    assert len(events) >= sum(value in good for value in told)
    for letter in letters:
        assert letter.raw == told[letter.position - 7]
        assert letter.place == f"{SCHEDULER_EVENTS}[0]@{letter.position}"
        assert letter.reason
        assert letter.code
