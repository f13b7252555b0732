"""Which runs of a scheduler's jobs a book knows: what keeps a run with the workload that it was booked to."""

from collections.abc import Collection
from typing import NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.ledger.copying import driver


class BookedRun(NamedTuple):
    """A run as a book knows it.

    Args:
        job: The scheduler's number of the job: what stands before the first hyphen in the workload's id.
        workload: The workload.
        submitted_s: When the run was submitted, seconds since the epoch; it is the run's id too.
        ended_s: When it ended; None while that is not known.
    """

    job: str
    workload: str
    submitted_s: int
    ended_s: int | None


def runs_of_jobs(reader: Reader, book: str, scheduler: str, jobs: Collection[str]) -> list[BookedRun]:
    """Return the runs of jobs, ordered by job, submission and workload.

    Args:
        reader: A transaction.
        book: The cluster.
        scheduler: Only what a source of this scheduler said counts, such as ``slurm``.
        jobs: The scheduler's numbers of the jobs.
    """
    rows = driver(reader).execute(
        """
        WITH submitted AS MATERIALIZED (
            SELECT DISTINCT split_part(workload, '-', 1) AS job, workload, effective_at
            FROM ledger.journal
            WHERE book = %(book)s AND type = 'workload.submitted' AND split_part(workload, '-', 1) = ANY(%(jobs)s)
                  AND position(%(scheduler)s || '/' IN source) > 0
        ), stopped AS (
            SELECT workload, run, max(effective_at) AS at
            FROM ledger.journal
            WHERE book = %(book)s AND workload = ANY(ARRAY(SELECT workload FROM submitted))
                  AND type IN ('workload.ended', 'workload.preempted', 'workload.requeued') AND run IS NOT NULL
            GROUP BY workload, run
        )
        SELECT job, submitted.workload, extract(epoch FROM effective_at)::bigint, extract(epoch FROM at)::bigint
        FROM submitted
        LEFT JOIN stopped ON stopped.workload = submitted.workload
                         AND run = extract(epoch FROM effective_at)::bigint::text
        ORDER BY job, effective_at, submitted.workload
        """,
        {"book": book, "jobs": list(jobs), "scheduler": scheduler},
    )
    return [BookedRun(*row) for row in rows]
