"""What all readers share: clusters, accounts, arrays that wait, questions to the ledger."""

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest
from tests.unit.sources.slurm.told import (
    ALPHA,
    FORMATS,
    T,
    Told,
    accounting,
    codes,
    document,
    listing,
    read,
    row,
    understood,
    written,
)

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.protocol import Fault, ImportOptions, KnownRun, Translated
from gpuledger.sources.registry import source
from gpuledger.sources.slurm import reading
from gpuledger.sources.slurm.reading import asks_for_gpus, number_of

RUN = Told()


@pytest.mark.parametrize("name", FORMATS)
def test_the_record_names_its_cluster_and_the_import_goes_before_it(tmp_path: Path, name: str) -> None:
    own = understood(read(name, tmp_path, written(name, Told(cluster="Beta"))))
    assert {(e.data.cluster, e.source) for e in own} == {("beta", "slurm/beta")}
    given = understood(read(name, tmp_path, written(name, RUN), ImportOptions(cluster="west")))
    assert {e.data.cluster for e in given} == {"west"}
    assert given[0].data.account == "west/prog-a"


def test_a_record_without_a_cluster_is_of_slurm(tmp_path: Path) -> None:
    cells = {column: value for column, value in row(RUN).items() if column != "Cluster"}
    events = understood(read("slurm-sacct-text", tmp_path, listing(cells)))
    assert {e.data.cluster for e in events} == {"slurm"}


@pytest.mark.parametrize("name", FORMATS)
def test_two_clusters_are_not_one(tmp_path: Path, name: str) -> None:
    items = read(name, tmp_path, written(name, RUN, Told(job=2, cluster="beta")), ALPHA)
    assert codes(items) == ["several-clusters"]
    assert len(understood(read(name, tmp_path, written(name, RUN, Told(job=2, cluster="beta"))))) == 6


@pytest.mark.parametrize("cluster", ["~org", "~x"])
def test_a_cluster_cannot_be_a_book_of_our_own(tmp_path: Path, cluster: str) -> None:
    assert codes(read("slurm-sacct-json", tmp_path, document(accounting(Told(cluster=cluster))))) == [
        "bad-name"
    ]


def test_what_no_account_is_named_for_is_booked_where_it_can_be_seen(tmp_path: Path) -> None:
    events = understood(read("slurm-sacct-text", tmp_path, listing(row(Told(account="")))))
    assert events[0].data.account == "unmapped/alpha"


def test_accounts_that_differ_by_case_are_two(tmp_path: Path) -> None:
    items = read(
        "slurm-sacct-json", tmp_path, document(accounting(RUN), accounting(Told(job=2, account="Prog-A")))
    )
    assert codes(items) == ["case-clash"]
    assert len({e.data.account for e in understood(items) if e.name == "workload.submitted"}) == 2


@pytest.mark.parametrize("name", FORMATS)
def test_a_fault_can_be_read_again(tmp_path: Path, name: str) -> None:
    (fault,) = read(name, tmp_path, written(name, Told(state="HIBERNATING", account="Prog-A")))
    assert isinstance(fault, Fault)
    assert fault.code == "unknown-state"
    context = json.loads(json.dumps(fault.context))
    with pytest.raises(BadRecord, match="HIBERNATING"):
        source(name).retry(fault.raw, context)
    mended = source(name).retry(fault.raw.replace(b"HIBERNATING", b"COMPLETED"), context)
    assert [e.name for e, _ in mended.events][-1] == "workload.ended"


def test_the_accounts_of_a_retry_are_those_of_the_import(tmp_path: Path) -> None:
    bad = Told(job=2, account="Prog-A", state="HIBERNATING")
    good, fault = read("slurm-sacct-json", tmp_path, document(accounting(RUN), accounting(bad)))
    assert isinstance(fault, Fault)
    mended = source("slurm-sacct-json").retry(fault.raw.replace(b"HIBERNATING", b"FAILED"), fault.context)
    clash = mended.events[0][0].data.account
    assert isinstance(good, Translated)
    assert clash.startswith("alpha/prog-a~")
    assert [a.code for a in mended.anomalies] == ["case-clash"]


class _Ledger:
    def __init__(self) -> None:
        self.asked: list[set[str]] = []

    def of(self, cluster: str, jobs: Collection[str]) -> Mapping[str, Sequence[KnownRun]]:
        self.asked.append(set(jobs))
        return {job: [KnownRun(f"{job}-5", T, None)] for job in jobs}


@pytest.mark.parametrize("name", FORMATS)
def test_the_ledger_is_asked_for_a_batch_of_jobs_at_once(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH", 2)
    ledger = _Ledger()
    runs = [Told(job=n) for n in (1, 2, 3, 2)]
    events = understood(read(name, tmp_path, written(name, *runs), ImportOptions(known=ledger)))
    assert ledger.asked == [{"1", "2"}, {"3"}]
    assert {e.data.workload for e in events} == {"1-5", "2-5", "3-5"}


def test_faults_of_a_batch_stay_faults_at_their_place(tmp_path: Path) -> None:
    content = written("slurm-jobcomp", RUN) + b"{}\n" + written("slurm-jobcomp", Told(job=2))
    items = read("slurm-jobcomp", tmp_path, content, ImportOptions(known=_Ledger()))
    assert [(type(item).__name__, item.line) for item in items] == [
        ("Translated", 1),
        ("Fault", 2),
        ("Translated", 3),
    ]


def test_a_retry_asks_the_ledger_too(tmp_path: Path) -> None:
    (fault,) = read("slurm-sacct-json", tmp_path, document(accounting(Told(state="X"))))
    assert isinstance(fault, Fault)
    mended = source("slurm-sacct-json").retry(
        fault.raw.replace(b'"X"', b'"FAILED"'), {**fault.context, "known": _Ledger()}
    )
    assert {e.data.workload for e, _ in mended.events} == {"4711-5"}


ARRAY = Told(job=2, array=2, state="PENDING", start=None, end=None, tres=None)


@pytest.mark.parametrize("name", ["slurm-sacct-json", "slurm-sacct-text", "slurmrestd"])
@pytest.mark.parametrize(
    ("tasks", "waiting"),
    [
        ("0-3", ["2_0", "2_1", "2_2", "2_3"]),
        ("0-3%2", ["2_0", "2_1"]),
        ("1,5-9:2", ["2_1", "2_5", "2_7", "2_9"]),
    ],
)
def test_the_tasks_of_an_array_that_may_start_wait_each_for_itself(
    tmp_path: Path, name: str, tasks: str, waiting: list[str]
) -> None:
    content = written(name, Told(**{**vars_of(ARRAY), "tasks": tasks}))
    events = understood(read(name, tmp_path, content))
    assert [e.data.workload for e in events] == [f"{task}-{T}" for task in waiting]
    assert {e.name for e in events} == {"workload.submitted"}


def vars_of(told: Told) -> dict[str, object]:
    return {field: getattr(told, field) for field in Told.__dataclass_fields__}


def test_a_list_of_tasks_that_was_cut_off_tells_those_that_stand_there(tmp_path: Path) -> None:
    content = written("slurmrestd", Told(**{**vars_of(ARRAY), "tasks": "0-1,..."}))
    items = read("slurmrestd", tmp_path, content)
    assert (len(understood(items)), codes(items)) == (2, ["tasks-cut"])


@pytest.mark.parametrize("tasks", ["a-b", "1-2:0", "-", "99999999999"])
def test_a_list_of_tasks_that_is_none_is_refused(tmp_path: Path, tasks: str) -> None:
    content = written("slurmrestd", Told(**{**vars_of(ARRAY), "tasks": tasks}))
    assert codes(read("slurmrestd", tmp_path, content)) == ["bad-array"]


def test_a_large_array_fills_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "TASKS_LIMIT", 20)
    content = written("slurmrestd", Told(**{**vars_of(ARRAY), "tasks": "0-999999999"}))
    items = read("slurmrestd", tmp_path, content)
    assert (len(understood(items)), codes(items)) == (20, ["tasks-cut"])


def test_the_number_of_a_job_is_the_one_that_people_see() -> None:
    assert number_of(14, 2, 0, None, None) == "2_0"
    assert number_of(22, 0, None, 21, 1) == "21+1"
    assert number_of(7, 0, None, 0, None) == "7"
    assert number_of(2, 2, None, None, None) == "2"
    with pytest.raises(BadRecord):
        number_of(-1, None, None, None, None)


@pytest.mark.parametrize(
    "command",
    [
        "sbatch --gpus 4 job.sh",
        "srun --gpus-per-node=h100:2 x",
        "sbatch --gres=gpu:h100:4 x",
        "sbatch --gres gpu:2",
        "salloc -G 2",
        "srun -G4 x",
    ],
)
def test_a_command_line_may_ask_for_gpus(command: str) -> None:
    assert asks_for_gpus(command)


@pytest.mark.parametrize(
    "command",
    [
        None,
        "",
        "sbatch job.sh",
        "srun --gpus=0 x",
        "sbatch --gres=gpu:0",
        "sbatch -p gpu",
        "x --gpu-bind=none",
    ],
)
def test_or_not(command: str | None) -> None:
    assert asks_for_gpus(command) is None


@pytest.mark.parametrize("name", ["slurm-sacct-json", "slurmrestd"])
def test_a_greeting_before_a_document_is_reported(tmp_path: Path, name: str) -> None:
    items = read(name, tmp_path, b"Welcome to login1\n\n" + written(name, RUN))
    assert codes(items) == ["banner"]
    assert len(understood(items)) == 3


@pytest.mark.parametrize("name", ["slurm-sacct-json", "slurmrestd"])
def test_no_jobs_are_no_records(tmp_path: Path, name: str) -> None:
    assert read(name, tmp_path, b"hello " + document()) == []
