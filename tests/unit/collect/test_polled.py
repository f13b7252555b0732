"""What is in every answer is told once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from gpuledger.collect.polled import PolledSink
from gpuledger.events.envelope import Event, make
from gpuledger.events.host import HostState, StateChanged
from gpuledger.events.workload import Ended
from gpuledger.ingest.dead_letters import DeadLetter
from gpuledger.ingest.intake import Taken
from gpuledger.kernel.errors import TooLarge


@dataclass
class Seen:
    intake: Any = None
    events: list[Event] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)

    def take(self, events: Sequence[tuple[Event, bytes]], letters: Sequence[DeadLetter]) -> Taken:
        self.events += [event for event, _ in events]
        self.letters += letters
        return Taken()


def letter(line: int, raw: bytes) -> DeadLetter:
    return DeadLetter("import/slurm-sacct-json/c", 0, line, f"sacct.out:{line}", "bad-state", "", "", raw)


def state(at_s: int, host: str, word: HostState, reason: str | None = None) -> tuple[Event, bytes]:
    fact = StateChanged(cluster="c", host=host, gpus=8, gpu_model="h100", state=word, reason=reason)
    return make(id=f"{host}/{at_s}", source="slurm/c", at_s=at_s, data=fact)


def test_a_faulty_record_is_one_dead_letter_wherever_it_stands_and_however_long_its_job_runs() -> None:
    seen = Seen()
    sink = PolledSink(seen)

    sink.take([], [letter(4, b'{"job_id": 1, "elapsed": 10}'), letter(9, b'{"job_id": 2, "elapsed": 10}')])
    sink.take([], [letter(5, b'{"job_id": 1, "elapsed": 70}')])
    sink.take([], [letter(5, b'{"job_id": 1, "elapsed": {"set": true, "number": 130}}')])

    assert [(item.position, item.raw) for item in seen.letters] == [
        (0, b'{"job_id": 1, "elapsed": 10}'),
        (0, b'{"job_id": 2, "elapsed": 10}'),
    ]


def test_a_faulty_record_that_changed_is_another_one() -> None:
    seen = Seen()
    sink = PolledSink(seen)

    sink.take([], [letter(4, b'{"state": "A"}')])
    sink.take([], [letter(4, b'{"state": "B"}')])

    assert len(seen.letters) == 2


def test_the_state_of_a_host_is_told_when_it_changes() -> None:
    seen = Seen()
    sink = PolledSink(seen)

    for at_s, word, reason in (
        (0, "healthy", None), (60, "healthy", None), (120, "unhealthy", "down"), (180, "unhealthy", "fan"),
        (240, "unhealthy", "fan"), (300, "healthy", None),
    ):  # fmt: skip
        sink.take([state(at_s, "h1", word, reason)], [])  # type: ignore[arg-type]
    sink.take([state(300, "h2", "healthy")], [])

    assert [event.id for event in seen.events] == ["h1/0", "h1/120", "h1/180", "h1/300", "h2/300"]


def test_it_knows_which_workloads_were_spoken_of_in_this_look() -> None:
    sink = PolledSink(Seen())
    fact = Ended(cluster="c", workload="7-100", run="1", reason="COMPLETED")

    sink.take([make(id="x", source="slurm/c", at_s=0, data=fact), state(0, "h1", "healthy")], [])
    assert sink.workloads == {"7-100"}

    sink.begin()
    assert sink.workloads == set()


def test_what_was_not_taken_is_told_again() -> None:
    """As when a batch is tried in halves because of one record in it."""

    class Breaking(Seen):
        def take(self, events: Sequence[tuple[Event, bytes]], letters: Sequence[DeadLetter]) -> Taken:
            if not self.letters and not self.events:
                self.letters.append(letter(0, b"tried"))
                raise TooLarge("one of them")
            return super().take(events, letters)

    seen = Breaking()
    sink = PolledSink(seen)
    told = [state(1, "h1", "idle")], [letter(4, b"?")]
    with pytest.raises(TooLarge):
        sink.take(*told)
    sink.take(*told)
    sink.take(*told)
    assert ([event.id for event in seen.events], [item.raw for item in seen.letters]) == (
        ["h1/1"],
        [b"tried", b"?"],
    )
