"""Comparing a period that is closed with Slurm's accounting."""

from pathlib import Path

from gpuledger.close.steps import Closer, Compare
from gpuledger.collect.programs import Programs
from gpuledger.database.engine import reading
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import Refused
from gpuledger.reconcile import slurm
from gpuledger.reconcile.comparison import GRACE_S
from gpuledger.reconcile.reconciling import Reconciliation
from gpuledger.sources.protocol import ImportOptions


def comparing(closer: Closer, record: Path | None, folder: Path) -> Compare:
    """Return what compares a period with a file that sacct printed, or with what sacct says now.

    Args:
        closer: Who closes what.
        record: The file; sacct is asked when there is none.
        folder: Where answers of sacct are kept while they are read.

    Raises:
        Refused: When there is no such file.
    """
    if record is not None and not record.is_file():
        raise Refused(f"--record: {record} does not exist", hint="name what sacct printed")

    def compare() -> Reconciliation:
        with reading(closer.engine) as reader:
            start_s, _ = closer.calendar(reader).period_bounds_s(closer.period)
        options = ImportOptions(cluster=closer.cluster)
        if record is not None:
            return slurm.with_file(closer.engine, record, options, grace_s=GRACE_S, from_s=start_s)
        return slurm.with_sacct(
            closer.engine,
            Programs(folder),
            options,
            cluster=closer.cluster,
            grace_s=GRACE_S,
            from_s=start_s,
            now_s=seconds(closer.clock.now()),
        )

    return compare
