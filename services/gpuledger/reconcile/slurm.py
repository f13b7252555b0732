"""Slurm's accounting as a record: a file that sacct printed, or what it prints now."""

from dataclasses import replace
from pathlib import Path

import sqlalchemy as sa

from gpuledger.collect.programs import Programs
from gpuledger.collect.slurm import ACCOUNTING, local, sacct, windows
from gpuledger.ingest.known_runs import LedgerRuns
from gpuledger.reconcile.comparison import Bounds
from gpuledger.reconcile.reconciling import Reconciliation
from gpuledger.reconcile.record import read_record
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source

TEXT = "slurm-sacct-text"


def with_file(
    engine: sa.Engine, path: Path, options: ImportOptions, *, grace_s: int, from_s: int | None
) -> Reconciliation:
    """Compare the ledger with a file, in whichever form sacct printed it.

    Args:
        engine: The database.
        path: The file.
        options: What is known of its records.
        grace_s: How long a fact may be on its way.
        from_s: From when on it was asked for; by its first end unless given.

    Raises:
        Refused: When it is neither form.
        Unavailable: When the database cannot be reached.
    """
    # The header of a table is told by its first line, a document by its whole.
    options = replace(options, known=LedgerRuns(engine))
    record = read_record(path, (source(TEXT), source(ACCOUNTING)), options)
    found = Reconciliation()
    for cluster in record.clusters:
        found.add(engine, record, cluster, f"slurm/{cluster}", record.bounds(cluster, grace_s, from_s))
    found.note_faults(record)
    found.find_conflicts(engine)
    return found


def with_sacct(
    engine: sa.Engine,
    programs: Programs,
    options: ImportOptions,
    *,
    cluster: str,
    grace_s: int,
    from_s: int,
    now_s: int,
) -> Reconciliation:
    """Compare the ledger with what sacct says now, a day at a time.

    Args:
        engine: The database.
        programs: Runs sacct.
        options: What is known of its records.
        cluster: The cluster that sacct speaks of.
        grace_s: How long a fact may be on its way.
        from_s: Runs that ended before are not compared.
        now_s: The present.

    Raises:
        CommandFailed: When sacct does not answer.
        Refused: When there is no sacct here.
        Unavailable: When the database cannot be reached.
    """
    found = Reconciliation()
    options = replace(options, cluster=cluster, known=LedgerRuns(engine))
    for begin_s, end_s in windows(from_s, now_s):
        answer = programs.ask(*sacct("-S", local(begin_s), "-E", local(end_s)))
        record = read_record(answer, (source(ACCOUNTING),), options)
        found.add(engine, record, cluster, f"slurm/{cluster}", Bounds(begin_s, end_s, now_s, grace_s))
        found.note_faults(record)
    found.find_conflicts(engine)
    return found
