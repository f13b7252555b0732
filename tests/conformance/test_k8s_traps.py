"""Semantics traps as Kubernetes shows them: watch streams in the API's own shape, read end to end.

Amounts are GPU-seconds. Each fixture is read as a source reads it; what follows from its facts is derived as the ledger
derives it, from the facts in the order of the stream and in the reverse order.
"""

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from gpuledger.events.workload import Resized, Started, WorkloadFact
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.charges import CHARGE, PHYSICAL, desired
from gpuledger.ledger.facts import Known
from gpuledger.ledger.segments import History, derive
from gpuledger.ledger.stops import Stop, why
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

HOUR = 3600
OCTOBER, NOVEMBER = "2026-10-31", "2026-11-01"


@pytest.fixture
def folder(repository: Path) -> Path:
    return repository / "tests/fixtures/sources/kubernetes"


class Story:
    """A stream as its source tells it."""

    def __init__(self, path: Path, name: str) -> None:
        self.items = list(source(name).read(path, ImportOptions()))
        self.faults = [item.code for item in self.items if isinstance(item, Fault)]
        translated = [item for item in self.items if isinstance(item, Translated)]
        self.odd = [one.code for item in translated for one in item.anomalies]
        self.events = [event for item in translated for event, _ in item.events]

    def histories(self) -> dict[str, History]:
        """Return what follows for each workload; the order of arrival must not matter."""
        facts: dict[str, list[Known]] = defaultdict(list)
        for event in self.events:
            if isinstance(event.data, WorkloadFact):
                known = Known(event.data, event.at_s, event.source, event.digest)
                facts[event.data.workload].append(known)
        forward = {workload: derive(told) for workload, told in facts.items()}
        assert forward == {workload: derive(told[::-1]) for workload, told in facts.items()}
        return forward

    def charged(self) -> dict[str, dict[str, int]]:
        """Return the name of each workload -> day -> GPU-seconds, those that hold nothing left out."""
        found: dict[str, dict[str, int]] = {}
        for workload, history in self.histories().items():
            sums: Counter[str] = Counter()
            for key, gpu_ms in desired(history, Calendar()).items():
                if (key.commodity, key.code) == (PHYSICAL, CHARGE):
                    sums[key.day.isoformat()] += gpu_ms
            if sums:
                found[workload.split("/")[1]] = {day: gpu_ms // 1000 for day, gpu_ms in sums.items()}
        return found


@pytest.mark.trap(2, "kueue")
@pytest.mark.trap(7, "kueue")
@pytest.mark.trap(16, "kueue")
@pytest.mark.trap(20, "kueue")
@pytest.mark.trap(31, "kueue")
@pytest.mark.trap(51, "kueue")
@pytest.mark.trap(53, "kueue")
def test_every_admission_counts_up_to_when_the_gpus_were_given_back(folder: Path) -> None:
    """24 GPUs over two pod sets: 5,430 s up to the kill at 21:40:30, then three hours over midnight.

    ``Evicted`` stays true through the second admission; the accumulated time agrees with the first.
    """
    story = Story(folder / "kueue-preempted.ndjson", "kueue")
    assert (story.faults, story.odd) == ([], [])
    assert story.charged() == {"job-pretrain": {OCTOBER: 24 * 5_430 + 24 * 2 * HOUR, NOVEMBER: 24 * HOUR}}
    (history,) = story.histories().values()
    assert {segment.gpu_model for segment in history.segments} == {"h100"}


@pytest.mark.trap(4, "kueue")
def test_the_wait_begins_when_it_was_submitted_and_again_at_the_kill(folder: Path) -> None:
    (history,) = Story(folder / "kueue-preempted.ndjson", "kueue").histories().values()
    waits = [(wait.to_s or 0) - wait.from_s for wait in history.waits]
    assert waits == [10 * 60, 19 * 60 + 30]
    assert {wait.submitted_s % 86_400 for wait in history.waits} == {20 * HOUR}


@pytest.mark.trap(21, "kueue")
def test_a_partial_admission_counts_what_was_admitted_and_gives_back_what_is_through(folder: Path) -> None:
    """16 GPUs asked for, 12 admitted, 4 given back after an hour."""
    story = Story(folder / "kueue-partial.ndjson", "kueue")
    assert story.charged() == {"job-sweep": {OCTOBER: 12 * HOUR + 8 * HOUR}}
    (history,) = story.histories().values()
    assert [segment.gpus_milli for segment in history.segments] == [12_000, 8_000]
    assert {segment.hosts for segment in history.segments} == {("node-1", "node-2")}


@pytest.mark.trap(14, "kueue")
def test_gpus_of_two_models_are_told_apart(folder: Path) -> None:
    story = Story(folder / "kueue-mixed.ndjson", "kueue")
    assert story.charged() == {"job-rl": {OCTOBER: 8 * HOUR}}
    (history,) = story.histories().values()
    assert {segment.gpu_model: segment.gpus_milli for segment in history.segments} == {
        "a100": 4_000,
        "h100": 4_000,
    }


@pytest.mark.trap(32, "kueue")
@pytest.mark.trap(51, "kueue")
def test_an_eviction_that_nobody_saw_ends_the_run_after_its_accumulated_time(folder: Path) -> None:
    """The watch broke with 410; admitted at 20:00 and at 22:00, 3,600 s accumulated: not two hours but one."""
    story = Story(folder / "kueue-missed.ndjson", "kueue")
    assert story.faults == ["watch-error"]
    assert story.odd == ["history-rebuilt"]
    assert story.charged() == {"job-long": {OCTOBER: 8 * HOUR + 8 * HOUR}}


@pytest.mark.trap(42, "kueue")
@pytest.mark.trap(51, "kueue")
def test_a_stream_that_begins_after_the_only_run_still_knows_its_length(folder: Path) -> None:
    story = Story(folder / "kueue-deactivated.ndjson", "kueue")
    assert story.odd == ["history-rebuilt"]
    assert story.charged() == {"job-idle": {OCTOBER: 8 * 93}}


@pytest.mark.trap(11, "kueue")
def test_a_workload_whose_node_failed_is_charged_until_that_was_noticed(folder: Path) -> None:
    story = Story(folder / "kueue-node-failed.ndjson", "kueue")
    assert story.charged() == {"job-unlucky": {OCTOBER: 64 * 3_900}}
    assert [why(event.data.reason) for event in story.events if hasattr(event.data, "reason")] == [
        Stop.NODE_FAILURE
    ]


@pytest.mark.trap(25, "kueue")
@pytest.mark.trap(25, "pods")
@pytest.mark.parametrize(("file", "name"), [("kueue-cancelled", "kueue"), ("pods-ended", "pods")])
def test_what_was_taken_away_while_it_waited_costs_nothing(folder: Path, file: str, name: str) -> None:
    story = Story(folder / f"{file}.ndjson", name)
    assert {"job-never", "pending"}.isdisjoint(story.charged())
    over = [
        wait.to_s
        for workload, history in story.histories().items()
        if workload.split("/")[1] in {"job-never", "pending"}
        for wait in history.waits
    ]
    assert [at % 86_400 for at in over if at] == [20 * HOUR + 1800]


@pytest.mark.trap(29, "pods")
@pytest.mark.trap(52, "pods")
def test_a_pod_that_pulls_crashes_or_terminates_holds_its_gpus(folder: Path) -> None:
    """Bound at 20:05, its last container ended at 21:00:25, in its grace period."""
    story = Story(folder / "pods-held.ndjson", "pods")
    assert story.charged() == {"served": {OCTOBER: 8 * (55 * 60 + 25)}}


@pytest.mark.trap(3, "pods")
@pytest.mark.trap(5, "pods")
@pytest.mark.trap(37, "pods")
def test_a_name_that_comes_again_is_another_workload(folder: Path) -> None:
    histories = Story(folder / "pods-ended.ndjson", "pods").histories()
    done = {workload: h for workload, h in histories.items() if workload.startswith("team-a/done/")}
    assert [
        [s.gpus_milli * ((s.to_s or 0) - s.from_s) // 1000 for s in h.segments] for h in done.values()
    ] == [
        [4 * HOUR],
        [4 * HOUR],
    ]
    assert sum(workload.startswith("team-a/escaped/") for workload in histories) == 1


@pytest.mark.trap(9, "pods")
def test_an_end_before_the_start_is_charged_nothing_and_reported(folder: Path) -> None:
    story = Story(folder / "pods-ended.ndjson", "pods")
    assert "skewed" not in story.charged()
    assert "end-before-start" in story.odd


@pytest.mark.trap(11, "pods")
def test_a_pod_on_a_lost_node_is_held_until_it_was_given_up(folder: Path) -> None:
    story = Story(folder / "pods-ended.ndjson", "pods")
    assert story.charged()["lost"] == {OCTOBER: 8 * 600}


@pytest.mark.trap(23, "pods")
@pytest.mark.trap(26, "pods")
@pytest.mark.trap(27, "pods")
@pytest.mark.trap(47, "pods")
def test_an_end_that_is_not_known_stays_open_and_is_never_1970(folder: Path) -> None:
    story = Story(folder / "pods-ended.ndjson", "pods")
    open_ = {
        workload.split("/")[1]
        for workload, history in story.histories().items()
        if any(segment.to_s is None for segment in history.segments)
    }
    assert open_ == {"open", "unknown", "gone"}
    assert "ended-at-unknown-time" in story.odd
    assert story.charged()["zero"] == {OCTOBER: 4 * 1800}  # the zero time of its container stands for none


@pytest.mark.trap(19, "pods")
def test_slices_of_a_device_never_add_up_to_more_than_it(folder: Path) -> None:
    charged = Story(folder / "pods-mig.ndjson", "pods").charged()
    assert charged.pop("whole") == {OCTOBER: HOUR}
    assert [day[OCTOBER] for day in charged.values()] == [142 * HOUR // 1000] * 7
    assert sum(day[OCTOBER] for day in charged.values()) <= HOUR


@pytest.mark.trap(17, "kai")
@pytest.mark.trap(19, "kai")
def test_parts_of_a_device_are_charged_and_its_reservation_is_not(folder: Path) -> None:
    """Halves for 59 and 30 minutes, 20,389 of 81,559 MiB for 20; the size of the last one's device is not known."""
    story = Story(folder / "kai-shared.ndjson", "kai")
    assert story.faults == ["unknown-share"]
    assert story.charged() == {
        "pg-share-1": {OCTOBER: (500 * 59 * 60 + 500 * 30 * 60 + 249 * 20 * 60) // 1000}
    }
    assert {key.account for h in story.histories().values() for key in desired(h, Calendar())} == {
        "kubernetes/vision"
    }


@pytest.mark.trap(15, "pods")
@pytest.mark.trap(17, "pods")
def test_cores_and_memory_of_a_virtual_device_are_no_devices(folder: Path) -> None:
    """Two virtual devices of 30 % each are 0.6 GPU; a part of the memory of an unknown device is not guessed."""
    story = Story(folder / "pods-virtual.ndjson", "pods")
    assert story.charged() == {"cores": {OCTOBER: 6 * HOUR // 10}}
    assert story.faults == ["unknown-share"]


@pytest.mark.trap(20, "pods")
def test_the_pods_of_a_workload_are_not_charged_beside_it(folder: Path) -> None:
    story = Story(folder / "kueue-and-pods.ndjson", "pods")
    assert story.charged() == {"job-both": {OCTOBER: 16 * HOUR}, "free": {OCTOBER: 8 * HOUR}}


@pytest.mark.trap(20, "kueue")
def test_the_pods_of_a_jobset_are_of_its_workload_though_they_do_not_name_kueue(folder: Path) -> None:
    """6 GPUs for 240 s; three pods, owned by a Job of the JobSet, were seen to go after the Workload was gone."""
    story = Story(folder / "kueue-jobset.ndjson", "kueue")
    assert story.charged() == {"job-llm": {OCTOBER: 6 * 240}}
    (history,) = story.histories().values()
    hosts = [(segment.to_s - segment.from_s, segment.hosts) for segment in history.segments if segment.to_s]
    assert hosts == [(60, ()), (180, ("node-1", "node-2"))], "where it is follows from its pods"
    told = [event.data.host_gpus_milli for event in story.events if isinstance(event.data, Resized)]
    assert told[0] == {"node-1": 4000, "node-2": 2000}


@pytest.mark.trap(15, "pods")
@pytest.mark.trap(19, "pods")
def test_devices_of_claims_are_what_their_driver_says_and_a_shared_one_is_charged_once(folder: Path) -> None:
    """Two GPUs for 240 s; a network device beside one GPU for 180 s counts for nothing; the others run still."""
    story = Story(folder / "pods-claims.ndjson", "pods")
    assert story.charged() == {"train": {OCTOBER: 2 * 240}, "plain": {OCTOBER: 180}}
    started = {e.data.workload.split("/")[1]: e.data for e in story.events if isinstance(e.data, Started)}
    assert {name: one.gpus_milli for name, one in started.items()} == {
        "train": 2000,
        "tune": 428,
        "serve-0": 1000,
        "serve-11": 0,
        "plain": 1000,
    }
    assert started["train"].gpu_uuids == [f"GPU-{k:08d}-0000-4000-8000-000000000000" for k in (0, 1)]
    assert (story.faults, story.odd) == ([], ["shared-claim"])


@pytest.mark.trap(19, "pods")
def test_devices_of_amd_and_intel_are_parts_of_gpus_as_their_drivers_say(folder: Path) -> None:
    """A GPU for 240 s, two of eight partitions of another as long, one of Intel as long; one in no slice is unknown."""
    story = Story(folder / "pods-makers.ndjson", "pods")
    assert story.charged() == {"rocm": {OCTOBER: 240}, "parts": {OCTOBER: 60}, "max": {OCTOBER: 240}}
    assert story.faults == ["unknown-share"]


@pytest.mark.trap(20, "pods")
def test_a_device_that_pods_share_is_charged_from_the_first_start_to_the_last_end(folder: Path) -> None:
    """50 minutes of one GPU: 20 to who was bound first, then 20, then 10 to the last, beside 40 min of another GPU."""
    story = Story(folder / "pods-shared.ndjson", "pods")
    assert story.charged() == {
        "b-early": {OCTOBER: 20 * 60},
        "a-late": {OCTOBER: 20 * 60},
        "c-second": {OCTOBER: (40 + 10) * 60},
    }
    assert story.odd == ["shared-claim"]


def test_the_same_stream_told_twice_is_the_same_facts(folder: Path, tmp_path: Path) -> None:
    """A watch that starts again repeats the newest state of everything."""
    text = (folder / "kueue-preempted.ndjson").read_bytes()
    (tmp_path / "twice").write_bytes(text + b"".join(text.splitlines(keepends=True)[-2:]))
    once, twice = Story(folder / "kueue-preempted.ndjson", "kueue"), Story(tmp_path / "twice", "kueue")
    assert twice.charged() == once.charged()
    assert {event.id for event in twice.events} == {event.id for event in once.events}


@pytest.mark.trap(38, "pods")
def test_a_banner_before_a_list_is_passed_over_and_reported(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "kueue-and-pods.ndjson").read_bytes().splitlines()
    members = b",".join(line.partition(b'"object": ')[2][:-1] for line in lines)
    (tmp_path / "list").write_bytes(
        b'Welcome to login-1!\n{"apiVersion": "v1", "kind": "List",\n "items": [' + members + b"]}\n"
    )
    story = Story(tmp_path / "list", "pods")
    assert story.charged() == {"job-both": {OCTOBER: 16 * HOUR}, "free": {OCTOBER: 8 * HOUR}}
    assert story.odd == ["banner"]


@pytest.mark.trap(41, "pods")
@pytest.mark.trap(57, "pods")
def test_a_time_without_an_offset_is_refused_and_a_fraction_is_floored(folder: Path, tmp_path: Path) -> None:
    text = (folder / "pods-held.ndjson").read_bytes()
    (tmp_path / "naive").write_bytes(text.replace(b"T20:05:00Z", b"T20:05:00"))
    assert Story(tmp_path / "naive", "pods").faults == ["bad-field"] * 4
    (tmp_path / "micro").write_bytes(text.replace(b"T20:05:00Z", b"T20:05:00.999999Z"))
    assert Story(tmp_path / "micro", "pods").charged() == {"served": {OCTOBER: 8 * (55 * 60 + 25)}}
