"""All steps of a close, one after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuledger.close import steps
from gpuledger.close.fence import one_closer
from gpuledger.close.steps import Closer, Compare, Gate
from gpuledger.database.engine import reading
from gpuledger.ledger.close_rows import CloseRows, close_of

OnStep = Callable[[str], None]
"""Told the name of each step as it begins."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a close came to.

    Args:
        rows: The rows of the book that it stands on.
        digest: SHA-256 of its file, in hexadecimal.
        checks: How many expectations of the gate held, where there was one.
        repeated: Whether it was sealed before.
        folder: Where its files are.
        names: The files.
        left_out: Files that were not made, and why.
    """

    rows: CloseRows
    digest: str
    checks: int
    repeated: bool
    folder: Path
    names: Sequence[str]
    left_out: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        """Return it under the published keys."""
        told = self.rows.reconciled
        return {
            "version": self.rows.version,
            "closing_seq": self.rows.closing_seq,
            "closed_seq": self.rows.closed_seq,
            "sealed_seq": self.rows.sealed_seq,
            "digest": self.digest,
            "checks": self.checks,
            "reconciled": None if told is None else {
                "runs": told.runs, "differences": told.differences, "unexplained": told.unexplained
            },
            "folder": str(self.folder),
            "files": list(self.names),
            "left_out": list(self.left_out),
            "repeated": self.repeated,
        }  # fmt: skip


def run(
    closer: Closer,
    *,
    compare: Compare | None = None,
    accept: bool = False,
    gate: Gate | None = None,
    on_step: OnStep = lambda _: None,
) -> Outcome:
    """Close a period, or go on with a close that stopped; one that is sealed gets its files again.

    Args:
        closer: Who closes what.
        compare: Compares the ledger with the scheduler's own record, where there is one.
        accept: Go on whatever differs from the record.
        gate: Validates the rows of the statement besides.
        on_step: Told of each step.

    Raises:
        NotFound: When the cluster has no book.
        Stopped: When runs differ from the record without a cause, or something does not hold.
        Refused: When the period is not over, or an earlier one is still open.
        Conflict: When another closer does not come to an end, or somebody reopened the period meanwhile.
        Unavailable: When a source may still tell of the period, or a file cannot be written.
        Corrupt: When what it is made of has changed since it was sealed.
    """
    with one_closer(closer.engine, closer.cluster):
        under_way = steps.check(closer)
        repeated = under_way is not None and under_way.digest is not None
        on_step("freeze")
        rows = steps.freeze(closer, compare, accept=accept)
        told = rows.reconciled
        if rows.closed_seq is None:
            on_step("reconcile")
            told = steps.reconcile(closer, compare, accept=accept)
        on_step("settle")
        steps.settle(closer, rows.version, told)
        on_step("validate")
        checks = steps.validate(closer, rows.version, None if repeated else gate)
        on_step("seal")
        digest = steps.seal(closer, rows.version)
        on_step("publish")
        published = steps.publish(closer, rows.version)
        with reading(closer.engine) as reader:
            rows = close_of(reader, closer.cluster, closer.period, rows.version)
    return Outcome(rows, digest, checks, repeated, *published)
