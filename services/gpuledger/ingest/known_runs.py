"""What sources ask the ledger before they name a workload."""

from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from gpuledger.database.engine import reading
from gpuledger.ledger.known_runs import runs_of_jobs
from gpuledger.sources.protocol import KnownRun


class LedgerRuns:
    """The runs that the ledger knows, each question answered from a snapshot of its own.

    What is on its way through a broker is not known yet: of two imports that follow each other at once through
    Kafka the second may see nothing of the first.

    Args:
        engine: The database.
        scheduler: Whose jobs they are, as the sources of their facts begin.
    """

    def __init__(self, engine: sa.Engine, scheduler: str = "slurm") -> None:
        self._engine, self._scheduler = engine, scheduler

    def of(self, cluster: str, jobs: Collection[str]) -> Mapping[str, Sequence[KnownRun]]:
        """Return the runs of jobs, by the scheduler's own number of the job.

        Raises:
            Unavailable: When the database cannot be reached.
        """
        found: dict[str, list[KnownRun]] = {}
        with reading(self._engine) as reader:
            for job, workload, submitted_s, ended_s in runs_of_jobs(reader, cluster, self._scheduler, jobs):
                found.setdefault(job, []).append(KnownRun(workload, submitted_s, ended_s))
        return found
