"""The close of a period as a job: the steps of the command, each an op that can be run again."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
import msgspec

from gpuledger.close import steps
from gpuledger.close.fence import one_closer
from gpuledger.close.slurm import comparing
from gpuledger.close.steps import Closer, Compare, Stopped
from gpuledger.events.closing import Reconciled
from gpuledger.kernel.errors import Corrupt, GpuledgerError, Refused
from gpuledger.notify.payloads import CloseFailed
from gpuledger.settings import load
from gpuledger_pipelines.close_gate import gate
from gpuledger_pipelines.data_docs.folder import DataDocs
from gpuledger_pipelines.noticing import notice_close
from gpuledger_pipelines.resources import Warehouse

CLOSE = "close_period"

AGAIN = dg.RetryPolicy(max_retries=3, delay=30)
"""A database or a file that cannot be had now, or another closer at work, is waited for."""


class PeriodClose(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Which period is closed, and how.

    Args:
        cluster: The cluster.
        period: The budget period, such as 2026-11.
        live: Ask ``sacct``, and compare the ledger with what it says.
        accept_differences: Go on whatever differs; the file says what does.
        by: Who closes it.
    """

    cluster: str
    period: str
    live: bool = False
    accept_differences: bool = False
    by: str = "dagster"

    def closer(self, warehouse: Warehouse) -> Closer:
        """Return who closes what, where the settings say."""
        return steps.closer_by(load(), warehouse.engine(), self.cluster, self.period, self.by)

    def compare(self, closer: Closer) -> Compare | None:
        """Return what compares the period with Slurm's accounting, where it is asked for."""
        return comparing(closer, None, load().sacct_folder) if self.live else None


@contextmanager
def step_of(close: PeriodClose, warehouse: Warehouse) -> Iterator[Closer]:
    """Let one closer of the cluster work; what is wrong with the close itself is not tried again.

    Raises:
        dagster.Failure: When the close must not go on; its metadata name what was found.
        Unavailable: When the database or a file cannot be had now.
        Conflict: When another closer does not come to an end.
    """
    closer = close.closer(warehouse)
    try:
        with one_closer(closer.engine, closer.cluster):
            yield closer
    except (Refused, Corrupt) as error:
        found = error.findings if isinstance(error, Stopped) else ()
        raise dg.Failure(
            error.message,
            metadata={
                "hint": error.hint,
                "findings": dg.MetadataValue.md("\n".join(f"- {each}" for each in found)),
            },
            allow_retries=False,
        ) from error


@dg.op(retry_policy=AGAIN)
def freeze(close: PeriodClose, warehouse: Warehouse) -> int:
    """Wait for sources, charge open runs up to the period's end, shut the period; return the version."""
    with step_of(close, warehouse) as closer:
        return steps.freeze(closer, close.compare(closer), accept=close.accept_differences).version


@dg.op(retry_policy=AGAIN)
def reconcile(version: int, close: PeriodClose, warehouse: Warehouse) -> dict:  # type: ignore[type-arg] # Dagster takes the bare class
    """Compare the book with the scheduler's own record, where it is asked for."""
    del version  # it has to be frozen first
    with step_of(close, warehouse) as closer:
        told = steps.reconcile(closer, close.compare(closer), accept=close.accept_differences)
    return {} if told is None else dict(msgspec.to_builtins(told))


@dg.op(retry_policy=AGAIN)
def settle(version: int, told: dict, close: PeriodClose, warehouse: Warehouse) -> int:  # type: ignore[type-arg] # as above
    """Let what is left expire or go on into the next period, and write the statement."""
    with step_of(close, warehouse) as closer:
        steps.settle(closer, version, msgspec.convert(told, Reconciled) if told else None)
    return version


@dg.op(retry_policy=AGAIN)
def validate(context: dg.OpExecutionContext, version: int, close: PeriodClose, warehouse: Warehouse) -> int:
    """Check the laws, and the statement by Great Expectations."""
    url, docs = warehouse.engine().url.render_as_string(hide_password=False), DataDocs.of(load())
    with step_of(close, warehouse) as closer:
        checks = steps.validate(closer, version, lambda place: gate(url, place, docs))
    context.add_output_metadata({"expectations": checks})
    return version


@dg.op(retry_policy=AGAIN)
def seal(context: dg.OpExecutionContext, version: int, close: PeriodClose, warehouse: Warehouse) -> int:
    """Write the digest of the file into the book."""
    with step_of(close, warehouse) as closer:
        digest = steps.seal(closer, version)
    context.add_output_metadata({"sha256": digest})
    return version


@dg.op(retry_policy=AGAIN)
def publish(context: dg.OpExecutionContext, version: int, close: PeriodClose, warehouse: Warehouse) -> None:
    """Write the files."""
    with step_of(close, warehouse) as closer:
        published = steps.publish(closer, version)
    for table in ("close", "statement"):
        context.log_event(
            dg.AssetMaterialization(
                asset_key=["warehouse", table],
                description=f"{close.period} of {close.cluster}, version {version}",
                metadata={"folder": dg.MetadataValue.path(str(published.folder))},
            )
        )


@dg.failure_hook(required_resource_keys={"warehouse", "close"})
def stopped(context: dg.HookContext) -> None:
    """Have people told at which step the close stopped, and why; what is tried again is no stop yet."""
    error, close = context.op_exception, context.resources.close
    cause = error.__cause__ if isinstance(error, dg.Failure) else error
    message = cause.message if isinstance(cause, GpuledgerError) else type(error).__name__
    data = CloseFailed(
        cluster=close.cluster,
        period=close.period,
        step=context.op.name,
        message=message,
        findings=list(cause.findings) if isinstance(cause, Stopped) else [],
    )
    notice_close(context.resources.warehouse, data)


@dg.job(
    name=CLOSE,
    hooks={stopped},
    description="Close a budget period of a cluster: the steps of gpuledger close run.",
)
def close_period() -> None:
    """Run the steps one after the other."""
    version = freeze()
    publish(seal(validate(settle(version, reconcile(version)))))
