"""Samples find the run that they are of by what the host calls it, whichever of the two is known first."""

from collections import Counter
from collections.abc import Sequence
from itertools import count
from random import Random
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.integration.ledger.books import CLUSTER, HOUR, Ledger, at, ended, started, submitted, told
from tests.integration.ledger.samples import sampled

from gpuledger.database.engine import reading, writing
from gpuledger.events.envelope import Event
from gpuledger.events.telemetry import SealedRung
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger import rebuild, sealing
from gpuledger.ledger.usage import By, UsageQuery, usage

START = at("2026-11-29T00:00:00Z")
YEAR = 365 * 86_400
WEEK = 7 * 86_400
SLURM = "slurm/alpha"
JOB = "job/4711"


def slurm(
    start_s: int,
    end_s: int | None,
    first_s: int | None = None,
    *,
    cluster: str = CLUSTER,
    guess: bool = False,
) -> list[Event]:
    """A run of job 4711 of 1 GPU that was submitted as it started; of the job that was submitted first then."""
    named = {"cluster": cluster, "name": f"4711-{start_s if first_s is None else first_s}"}
    run = str(start_s)
    facts = [
        told(start_s, submitted(**named, gpus_milli=1000), source=SLURM, id=f"{cluster}/{run}/submitted"),
        told(
            start_s, started(**named, run=run, gpus_milli=1000), source=SLURM, id=f"{cluster}/{run}/started"
        ),
    ]
    if end_s is not None:
        end = ended(**named, run=run, estimated=guess or None)
        facts.append(told(end_s, end, source=SLURM, id=f"{cluster}/{run}/ended/{end_s}"))
    return facts


def sampled_s(ledger: Ledger, cluster: str = CLUSTER) -> dict[str, int]:
    """Return workload/run -> seconds sampled; what no run is known for is ``/HANDLE``."""
    rows = ledger.rows(
        "SELECT workload || '/' || run, sum(sampled_gpu_ms)::bigint / 1000 FROM telemetry.run_buckets"
        " WHERE book = :book GROUP BY 1",
        book=cluster,
    )
    return dict(row for row in rows)


def used_ms(ledger: Ledger) -> dict[str, int | None]:
    with reading(ledger.engine) as reader:
        report = usage(reader, UsageQuery(by=By.ACCOUNT), START + 30 * HOUR)
    return {row.key: row.used_gpu_ms for row in report.rows}


def test_a_sample_that_comes_before_its_run_is_the_runs_once_that_is_known(ledger: Ledger) -> None:
    sampled(ledger, START, START + HOUR, handle=JOB)
    assert sampled_s(ledger) == {f"/{JOB}": HOUR}
    ledger.append(*slurm(START, START + 2 * HOUR))
    assert sampled_s(ledger) == {f"4711-{START}/{START}": HOUR}
    sampled(ledger, START + HOUR, START + 2 * HOUR, handle=JOB)
    assert sampled_s(ledger) == {f"4711-{START}/{START}": 2 * HOUR}
    assert used_ms(ledger) == {"org/vision": 2 * HOUR * 500}


def test_a_number_that_is_given_out_again_is_another_job(ledger: Ledger) -> None:
    sampled(ledger, START, START + HOUR, handle=JOB)
    ledger.append(*slurm(START - YEAR, START - YEAR + HOUR))
    assert sampled_s(ledger) == {f"/{JOB}": HOUR}
    ledger.append(*slurm(START, None))
    sampled(ledger, START - YEAR, START - YEAR + 600, handle=JOB)
    assert sampled_s(ledger) == {
        f"4711-{START}/{START}": HOUR,
        f"4711-{START - YEAR}/{START - YEAR}": 600,
    }


def test_runs_of_a_requeued_job_share_its_samples_by_time(ledger: Ledger) -> None:
    ledger.append(*slurm(START, START + 650), *slurm(START + 1250, None, START))
    sampled(ledger, START, START + 1800, handle=JOB)
    assert sampled_s(ledger) == {
        f"4711-{START}/{START}": 900,  # its last bucket began before its end
        f"/{JOB}": 300,  # nobody held the device from 900 to 1200
        f"4711-{START}/{START + 1250}": 600,
    }


def test_a_bucket_in_which_a_job_was_requeued_is_the_later_runs(ledger: Ledger) -> None:
    ledger.append(*slurm(START, START + 310), *slurm(START + 400, None, START))
    sampled(ledger, START, START + 600, handle=JOB)
    assert sampled_s(ledger) == {f"4711-{START}/{START}": 300, f"4711-{START}/{START + 400}": 300}


def test_an_estimated_end_does_not_cut_off_the_samples_that_may_refute_it(ledger: Ledger) -> None:
    ledger.append(*slurm(START, START + HOUR, guess=True))
    sampled(ledger, START + HOUR, START + 2 * HOUR, handle=JOB)
    sampled(ledger, START + HOUR + WEEK, START + 2 * HOUR + WEEK, handle=JOB)
    assert sampled_s(ledger) == {f"4711-{START}/{START}": HOUR, f"/{JOB}": HOUR}
    ledger.append(*slurm(START, START + 2 * HOUR)[2:])
    assert sampled_s(ledger) == {f"4711-{START}/{START}": HOUR, f"/{JOB}": HOUR}


def test_a_run_that_the_sampler_names_itself_needs_no_handle(ledger: Ledger) -> None:
    ledger.append(*slurm(START, None))
    sampled(ledger, START, START + 300, f"4711-{START}/{START}")
    sampled(ledger, START, START + 300, None, gpus="g2")
    assert sampled_s(ledger) == {f"4711-{START}/{START}": 300, "/": 300}


def test_clusters_with_the_same_numbers_do_not_meet(ledger: Ledger) -> None:
    ledger.append(*slurm(START, None))
    sampled(ledger, START, START + 300, handle=JOB, cluster="beta")
    assert sampled_s(ledger, "beta") == {f"/{JOB}": 300}


def test_the_seal_is_of_the_samples_and_the_same_before_the_run_is_known_and_after(ledger: Ledger) -> None:
    def seal() -> tuple[list[SealedRung], str]:
        with reading(ledger.engine) as reader:
            fact = sealing.sealed(reader, CLUSTER, START + HOUR)
        assert fact is not None
        return fact.rungs, fact.digest

    sampled(ledger, START, START + 600, handle=JOB)
    sampled(ledger, START, START + 600, None, gpus="idle")
    before = seal()
    assert [rung.sampled_gpu_ms for rung in before[0]] == [600_000]
    ledger.append(*slurm(START, None))
    assert seal() == before


def test_handles_that_were_lost_come_back_from_the_journal(ledger: Ledger) -> None:
    ledger.append(*slurm(START, START + HOUR))
    sampled(ledger, START, START + HOUR, handle=JOB)
    before = sampled_s(ledger)
    ledger.change("DELETE FROM telemetry.handles")
    assert sampled_s(ledger) == {f"/{JOB}": HOUR}
    with reading(ledger.engine) as reader:
        (difference,) = rebuild.check(reader, Calendar()).differences
    assert difference.startswith("handle missing: alpha\tjob/4711\t")
    with writing(ledger.engine) as writer:
        rebuild.rebuild(writer, Calendar())
    assert sampled_s(ledger) == before
    with reading(ledger.engine) as reader:
        assert rebuild.check(reader, Calendar()).ok


class _Run(NamedTuple):
    start_s: int
    end_s: int | None
    guess: bool


class _Sample(NamedTuple):
    gpu: str
    from_s: int
    length_s: int


runs = st.lists(
    st.builds(
        lambda start, length, guess: _Run(
            START + start * 100, None if length is None else START + (start + length) * 100, guess
        ),
        st.integers(0, 40),
        st.none() | st.integers(1, 20),
        st.booleans(),
    ),
    max_size=4,
    unique_by=lambda run: run.start_s,
)
samples = st.lists(
    st.builds(
        lambda gpu, start, length: _Sample(gpu, START + start * 50, length * 50),
        st.sampled_from(["g1", "g2"]),
        st.integers(0, 100),
        st.integers(1, 20),
    ),
    max_size=8,
    unique=True,
)
numbers = count(1)
few = settings(max_examples=max(10, settings().max_examples // 5), deadline=None)


def expected(told_runs: Sequence[_Run], told_samples: Sequence[_Sample]) -> dict[str, int]:
    """Say for each sampled second whose it is, one after another, by the rule that the documentation states."""
    found: Counter[str] = Counter()
    for sample in told_samples:
        for second in range(sample.from_s, sample.from_s + sample.length_s):
            begins = second // 300 * 300
            held = [
                run
                for run in told_runs
                if run.start_s < begins + 300
                and (run.end_s is None or run.end_s + (WEEK if run.guess else 0) > begins)
            ]
            newest = max(held, default=None)
            found[f"4711-{newest.start_s}/{newest.start_s}" if newest else f"/{JOB}"] += 1
    return dict(found)


@few
@given(runs, samples, st.randoms(use_true_random=False))
def test_any_order_of_runs_and_samples_gives_the_same_samples_to_each_run(
    shared_ledger: Ledger, told_runs: list[_Run], told_samples: list[_Sample], random: Random
) -> None:
    cluster = f"c{next(numbers)}"
    steps: list[Event | _Sample] = [*told_samples]
    for run in told_runs:
        steps += slurm(run.start_s, run.end_s, cluster=cluster, guess=run.guess)
    random.shuffle(steps)
    for step in steps:
        if isinstance(step, _Sample):
            end_s = step.from_s + step.length_s
            sampled(shared_ledger, step.from_s, end_s, gpus=step.gpu, cluster=cluster, handle=JOB)
        else:
            shared_ledger.append(step)
    assert sampled_s(shared_ledger, cluster) == expected(told_runs, told_samples)
