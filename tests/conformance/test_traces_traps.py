"""Semantics traps that published traces show, each with its number in the list of traps, from the file to the charge.

Amounts are GPU-seconds unless said otherwise.
"""

import datetime as dt
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.property.sources.seeds import FIXTURES

from gpuledger.events.host import StateChanged
from gpuledger.events.telemetry import Sampled
from gpuledger.events.workload import WorkloadFact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.charges import CHARGE, PHYSICAL, desired
from gpuledger.ledger.facts import Known
from gpuledger.ledger.inventory import HostFact, intervals
from gpuledger.ledger.segments import History, derive
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

SHANGHAI = ImportOptions(timezone="Asia/Shanghai")


class Book:
    """What a ledger would make of a file: everything derived from all facts, as if they came in any order."""

    def __init__(self, name: str, path: Path, options: ImportOptions | None = None) -> None:
        items: Sequence[Translated | Fault] = list(source(name).read(path, options or ImportOptions()))
        self.faults = [item.code for item in items if isinstance(item, Fault)]
        understood = [item for item in items if isinstance(item, Translated)]
        self.anomalies = [anomaly.code for item in understood for anomaly in item.anomalies]
        known: dict[str, list[Known]] = {}
        for item in understood:
            for event, _ in item.events:
                if isinstance(event.data, WorkloadFact):
                    fact = Known(event.data, event.at_s, event.source, event.digest)
                    known.setdefault(event.data.workload, []).append(fact)
        self.histories = {workload: derive(facts) for workload, facts in known.items()}
        for workload, facts in known.items():
            assert derive([*facts[::-1], *facts]) == self.histories[workload], (
                "order and repetition change nothing"
            )

    def charged(self) -> dict[str, int]:
        """Return GPU-seconds by workload, of those that are charged any."""
        return {w: sum(days.values()) for w in self.histories if (days := self.by_day(w))}

    def by_day(self, workload: str, zone: str = "UTC") -> dict[str, int]:
        sums: Counter[str] = Counter()
        for key, gpu_ms in desired(self.histories[workload], Calendar(zone)).items():
            if (key.commodity, key.code) == (PHYSICAL, CHARGE) and gpu_ms:
                sums[key.day.isoformat()] += gpu_ms
        return {day: gpu_ms // 1000 for day, gpu_ms in sums.items()}

    def waits(self, workload: str) -> list[int | None]:
        history: History = self.histories[workload]
        return [None if wait.to_s is None else wait.to_s - wait.from_s for wait in history.waits]


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines))
    return path


def at(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp())


SWF_HEAD = ("; Note: processors are GPUs", f"; UnixStartTime: {at('2026-10-31T22:00:00Z')}")
ACME_HEAD = (
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time"
)
HELIOS_HEAD = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
STATES_HEAD = (
    "time,vc,total_job_num,running_job_num,pending_job_num,total_gpu_num,running_gpu_num,pending_gpu_num,"
    "idle_gpu_num,gpu_utilization"
)


@pytest.mark.trap(2, "philly-json")
@pytest.mark.trap(45, "philly-json")
def test_attempts_are_summed(tmp_path: Path) -> None:
    """The requeue of the list, with its four runs, as attempts of one job."""
    spans = [
        ("00:00:00", "01:04:49"),
        ("02:00:00", "03:14:33"),
        ("04:00:00", "05:42:02"),
        ("06:00:00", "06:35:53"),
    ]
    detail = [{"ip": "m1", "gpus": ["gpu0"]}]
    attempts = [
        {"start_time": f"2017-10-09 {start}", "end_time": f"2017-10-09 {end}", "detail": detail}
        for start, end in spans
    ]
    job = {"status": "Pass", "vc": "a", "jobid": "j", "attempts": attempts, "user": "u",
           "submitted_time": "2017-10-08 23:00:00"}  # fmt: skip
    book = Book("philly-json", written(tmp_path / "p", json.dumps([job])))
    assert book.charged() == {"j": 3_889 + 4_473 + 6_122 + 2_153}
    assert book.waits("j") == [3_600, 55 * 60 + 11, 45 * 60 + 27, 17 * 60 + 58]


@pytest.mark.trap(45, "philly-json")
def test_what_an_attempt_does_not_say_stays_unknown() -> None:
    book = Book("philly-json", FIXTURES / "philly-json/cluster_job_log.json")
    assert book.charged()["application_1506638472019_10003"] == 2 * 600
    assert book.anomalies == ["attempt-without-start", "attempt-without-end", "no-gpus"]


@pytest.mark.trap(45, "philly-json")
@pytest.mark.parametrize(("suffix", "offset"), [(" PDT", "-07:00"), (" PST", "-08:00")])
def test_pacific_times_say_their_offset(tmp_path: Path, suffix: str, offset: str) -> None:
    attempt = {"start_time": f"2017-11-05 01:30:00{suffix}", "end_time": f"2017-11-05 01:40:00{suffix}",
               "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}  # fmt: skip
    job = {"status": "Pass", "vc": "a", "jobid": "j", "attempts": [attempt], "user": "u",
           "submitted_time": f"2017-11-05 01:00:00{suffix}"}  # fmt: skip
    book = Book("philly-json", written(tmp_path / "p", json.dumps([job])))
    (segment,) = book.histories["j"].segments
    assert segment.from_s == at(f"2017-11-05T01:30:00{offset}")


@pytest.mark.trap(45, "philly-json")
@pytest.mark.trap(49, "philly-json")
def test_a_gpu_that_was_offline_was_not_idle() -> None:
    """NA has no sample: unknown, not 0. A machine that is NA altogether is unhealthy in the partition of its time."""
    items = list(source("philly-json").read(FIXTURES / "philly-json/cluster_gpu_util.csv", ImportOptions()))
    told = [event for item in items if isinstance(item, Translated) for event, _ in item.events]
    samples = [(event.at_s, event.data) for event in told if isinstance(event.data, Sampled)]
    sampled = {(at_s, gpu.uuid): gpu.gpu_util for at_s, sample in samples for gpu in sample.gpus}
    minute = at("2017-10-03T00:09:00-07:00")
    assert (minute, "m29/gpu1") not in sampled
    assert sampled[minute, "m29/gpu7"] == 0
    hosts = [
        HostFact(event.data, Known(event.data, event.at_s, event.source, event.digest))
        for event in told
        if isinstance(event.data, StateChanged)
    ]
    unhealthy = [interval for interval in intervals(hosts) if interval.state == "unhealthy"]
    assert sum((interval.to_s or 0) - interval.from_s for interval in unhealthy) == 120


@pytest.mark.trap(9, "philly-json")
def test_negative_elapsed_is_charged_0_kept_and_told(tmp_path: Path) -> None:
    attempt = {"start_time": "2017-10-09 02:00:00", "end_time": "2017-10-09 01:00:00",
               "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}  # fmt: skip
    job = {"status": "Pass", "vc": "a", "jobid": "j", "attempts": [attempt], "user": "u",
           "submitted_time": "2017-10-09 00:00:00"}  # fmt: skip
    book = Book("philly-json", written(tmp_path / "p", json.dumps([job])))
    assert (book.charged(), book.anomalies, book.waits("j")) == ({}, ["end-before-start"], [7_200])


@pytest.mark.trap(7, "swf")
def test_a_months_end_cuts_a_job(tmp_path: Path) -> None:
    job = "1 0 1800 17100 8 -1 -1 8 28800 -1 1 1 1 -1 1 1 -1 -1"
    book = Book("swf", written(tmp_path / "s", *SWF_HEAD, job))
    (workload,) = book.charged()
    assert book.by_day(workload) == {"2026-10-31": 43_200, "2026-11-01": 93_600}
    assert book.by_day(workload, "America/Los_Angeles") == {"2026-10-31": 136_800}


@pytest.mark.trap(25, "swf")
@pytest.mark.trap(25, "acme")
@pytest.mark.trap(25, "beaker")
def test_cancelled_while_pending_is_0(tmp_path: Path) -> None:
    swf = Book("swf", written(tmp_path / "s", *SWF_HEAD, "1 0 600 -1 -1 -1 -1 8 60 -1 5 1 1 -1 1 1 -1 -1"))
    row = "j,u,1,8,128,Other,CANCELLED,2023-03-01 00:18:22+08:00,,2023-03-01 00:28:22+08:00,0,,0"
    acme = Book("acme", written(tmp_path / "a", ACME_HEAD, row))
    for book in (swf, acme):
        ((workload, _),) = book.histories.items()
        assert (book.charged(), book.waits(workload)) == ({}, [600])
    beaker = Book("beaker", FIXTURES / "beaker/jobs.ndjson")
    assert "task-4" not in beaker.charged()
    assert beaker.waits("task-4") == [1_800]


@pytest.mark.trap(26, "beaker")
def test_a_job_that_runs_on_is_open(tmp_path: Path) -> None:
    book = Book("beaker", FIXTURES / "beaker/jobs.ndjson")
    (segment,) = book.histories["task-5"].segments
    assert (segment.from_s, segment.to_s) == (at("2026-11-02T08:00:00Z"), None)
    assert "task-5" not in book.charged()


@pytest.mark.trap(28, "beaker")
@pytest.mark.trap(29, "beaker")
def test_gpus_are_charged_from_the_schedule_to_the_exit(tmp_path: Path) -> None:
    """From the allocation on, the container's start included; the upload of results after the exit is not charged."""
    assert Book("beaker", FIXTURES / "beaker/jobs.ndjson").charged()["task-1"] == 8 * 3_600


@pytest.mark.trap(53, "beaker")
@pytest.mark.trap(2, "beaker")
def test_preempted_work_is_charged_to_the_kill_and_its_next_try_beside_it() -> None:
    """Cancelled at 08:39:00, killed at 08:40:00: the grace was used."""
    book = Book("beaker", FIXTURES / "beaker/jobs.ndjson")
    assert book.charged()["task-2"] == 8 * (30 * 60) + 8 * (60 * 60)
    assert book.waits("task-2") == [600, 600]


@pytest.mark.trap(56, "beaker")
def test_an_idle_job_is_charged() -> None:
    assert Book("beaker", FIXTURES / "beaker/jobs.ndjson").charged()["task-3"] == 2 * (50 * 60 + 5)


@pytest.mark.trap(37, "events")
@pytest.mark.trap(37, "clustercockpit")
def test_names_with_other_letters_delimiters_and_line_ends_stay_themselves(tmp_path: Path) -> None:
    event = {
        "id": "1", "source": "s", "type": "org.gpuledger.workload.submitted.v1", "time": "2026-11-01T00:00:00Z",
        "data": {"cluster": "c", "workload": 'job é|#,;\n"x"', "account": "c/a", "user": "ü", "gpus_milli": 8000},
    }  # fmt: skip
    book = Book("events", written(tmp_path / "e", json.dumps(event)))
    assert (list(book.histories), book.faults) == (['job é|#,;\n"x"'], [])
    head = (
        "job_id,cluster,subcluster,user,project,start_time,duration,walltime,state,num_acc,nodes,accelerators,"
        "acc_utilization_avg"
    )
    rows = (
        '1,alex,a40,ü,"p,1",1675777167,60,600,completed,1,n1,n1/E1,',
        "2,alex,a40,u,p\x0b1,1675777167,60,600,completed,1,n1,n1/E1,",
    )
    book = Book("clustercockpit", written(tmp_path / "c", head, *rows))
    assert (sum(book.charged().values()), book.faults) == (60, ["bad-name"])


@pytest.mark.trap(42, "dlrm")
def test_instances_that_are_open_at_an_edge_are_cut_and_have_no_wait() -> None:
    book = Book("dlrm", FIXTURES / "dlrm/disaggregated_DLRM_trace.csv")
    charged = book.charged()
    assert charged["instance_1"] == 9_000, "older than the trace, and outlived it"
    assert charged["instance_2"] == 3_600, "older than the trace"
    assert charged["instance_4"] == 7_000, "outlived the trace"
    assert book.waits("instance_1") == book.waits("instance_2") == []
    assert [segment.estimated for segment in book.histories["instance_4"].segments] == [True]
    assert book.waits("instance_3") == [10], "the others have their wait"


@pytest.mark.trap(42, "philly-json")
@pytest.mark.trap(42, "pai")
def test_what_runs_when_a_trace_is_cut_is_cut_with_it() -> None:
    philly = Book("philly-json", FIXTURES / "philly-json/cluster_job_log.json")
    assert philly.charged()["application_1506638472019_10004"] == 3_600
    assert philly.waits("application_1506638472019_10004") == [], "nobody knows when it was submitted"
    pai = Book("pai", FIXTURES / "pai")
    (segment,) = pai.histories["job0002:tensorflow:i-tf-0"].segments
    assert (segment.to_s, segment.estimated) == (4_552_000, True)


@pytest.mark.trap(42, "helios")
def test_states_are_cut_with_the_day_on_which_they_end_and_say_nothing_of_waits(tmp_path: Path) -> None:
    row = "2020-05-31 23:27:00,vcA,1,1,0,16,14,0,2,0.875"
    book = Book("helios", written(tmp_path / "h", STATES_HEAD, row), SHANGHAI)
    ((workload, amount),) = book.charged().items()
    assert (amount, book.waits(workload)) == (14 * 33 * 60, [])


@pytest.mark.trap(43, "acme")
def test_the_duration_of_kalos_counts_the_queue_and_is_not_booked() -> None:
    """The rows that its README shows: 18 where the times are 8 apart, 82 where they are 70."""
    book = Book("acme", FIXTURES / "acme/trace_kalos.csv")
    assert sorted(book.charged().values()) == [64 * 8, 64 * 70]
    assert book.anomalies == ["duration-with-queue", "duration-with-queue"]
    assert [book.waits(workload) for workload in book.histories] == [[10], [12]]


@pytest.mark.trap(44, "helios")
def test_helios_is_refused_without_a_zone_and_counts_in_the_one_that_is_named(tmp_path: Path) -> None:
    row = "1,u,vcA,4,16,1,COMPLETED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0"
    path = written(tmp_path / "h", HELIOS_HEAD, row)
    with pytest.raises(Refused, match="--tz"):
        source("helios").read(path, ImportOptions())
    book = Book("helios", path, SHANGHAI)
    ((_, history),) = book.histories.items()
    assert [segment.from_s for segment in history.segments] == [at("2020-06-09T18:41:27+08:00")]
    assert sum(book.charged().values()) == 4 * 249


@pytest.mark.trap(44, "helios")
def test_the_daily_capacity_is_taken_as_it_is_and_its_odd_day_is_told() -> None:
    book = Book("helios", FIXTURES / "helios/Earth_gpu_number.csv", SHANGHAI)
    assert (book.faults, book.anomalies, book.histories) == ([], ["one-holder"], {})


@pytest.mark.trap(39, "helios")
@pytest.mark.trap(40, "helios")
def test_local_times_that_came_twice_or_never_are_told(tmp_path: Path) -> None:
    twice = "1,u,vcA,1,16,1,COMPLETED,2017-11-05 01:30:00,2017-11-05 01:30:00,2017-11-05 02:30:00,7200,0"
    never = "2,u,vcA,1,16,1,COMPLETED,2017-03-12 02:30:00,2017-03-12 02:30:00,2017-03-12 03:30:00,0,0"
    path = written(tmp_path / "h", HELIOS_HEAD, twice, never)
    book = Book("helios", path, ImportOptions(timezone="America/Los_Angeles"))
    assert sorted(book.charged().values()) == [7_200], "01:30, the first time, to 02:30 is two hours"
    assert Counter(book.anomalies) == {"ambiguous-time": 2, "nonexistent-time": 2}


@pytest.mark.trap(57, "dlrm")
@pytest.mark.trap(57, "pai")
@pytest.mark.trap(57, "swf")
@pytest.mark.trap(57, "philly")
def test_float_seconds_are_floored_and_float_gpus_are_thousandths(tmp_path: Path) -> None:
    dlrm = Book("dlrm", FIXTURES / "dlrm/disaggregated_DLRM_trace.csv")
    assert dlrm.charged()["instance_3"] == 2 * 7_200, "deleted at 8210.0000000002"
    swf = Book("swf", FIXTURES / "swf/gpus.swf")
    assert swf.charged()["6-1793488000"] == 2 * 60, "ran for 60.5"
    philly = (
        "timestamp,duration,num_gpus,gpu_time,cluster",
        "2017-10-09 07:01:55,0.1,1,0.1,a",
        "2017-10-09 07:01:55,1.3,1,1.3,a",
    )
    assert list(Book("philly", written(tmp_path / "p", *philly)).charged().values()) == [1]
    pai = Book("pai", FIXTURES / "pai")
    assert pai.charged()["job0001:worker:i-worker-0"] == 250, "500 s of 50 %"
