"""How a table of the warehouse is declared as an asset with a gate behind it, so that all of them are alike."""

import datetime as dt
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import dagster as dg
from sqlalchemy.exc import OperationalError

from gpuledger.kernel.errors import Unavailable
from gpuledger_pipelines.gate import Gate, Verdict
from gpuledger_pipelines.noticing import notice_check
from gpuledger_pipelines.partitions import DAY_AND_CLUSTER, Span, span_of
from gpuledger_pipelines.resources import PROGRESS, KeptDocs, Rewriting, Warehouse

SUITE = "suite"
"""Name of the check behind each table."""

LEDGER_VIEWS = {
    "segments": "who held how many GPUs, from when to when",
    "waits": "who waited for how many GPUs, from when to when",
    "submissions": "which workloads somebody asked for, and when",
    "hosts": "which GPUs were installed, and in which state",
    "shares": "which share of which account was in force when",
    "accounts": "the program tree",
    "balances": "what was granted, charged and held, by period",
    "placements": "which runs were told to hold how much on which host",
    "rates": "what the time of a GPU model weighs, from when to when",
    "buckets": "samples of utilisation in buckets of five minutes",
}

RETRIES = 3
"""How often a step is tried again when the database is not there; a gate that fails is not tried again."""

RETRY_AFTER_S = 20
"""How long before the first time; twice as long before each further one."""

ONCE_TAG = "gpuledger/once"
"""Run tag: somebody waits for the run, so a database that is not there is told at once."""

FRESH_FOR = dt.timedelta(hours=26)
"""A day is over every 24 hours; after this long without a roll-up Dagster shows the table as stale."""

FOLLOWS = (
    dg.AutomationCondition.in_latest_time_window(dt.timedelta(days=2))
    & dg.AutomationCondition.any_deps_updated().since_last_handled()
    & ~dg.AutomationCondition.any_deps_missing().ignore(
        dg.AssetSelection.assets(*(["ledger_read", name] for name in LEDGER_VIEWS))
    )
    & ~dg.AutomationCondition.any_deps_in_progress()
    & ~dg.AutomationCondition.in_progress()
).with_label("what it is computed from was restated alone")
"""Who restates one table of today or yesterday by hand has what depends on it follow; a roll-up restates all itself."""

Restate = Callable[[Rewriting, Span], int]
"""Takes the span's rows out of a table, puts them in anew, and returns how many it put in."""


RESTATES: dict[str, Restate] = {}
"""How each declared table is restated, in an order in which each can be computed from those before it."""


GATES: dict[str, Gate] = {}
"""What must hold of each declared table."""


def ledger_specs() -> list[dg.AssetSpec]:
    """Return the ledger's read views, so that the lineage begins where the facts are."""
    return [
        dg.AssetSpec(["ledger_read", name], description=text, group_name="ledger", kinds={"postgres"})
        for name, text in LEDGER_VIEWS.items()
    ]


def warehouse_asset(
    *, group: str, gate: Gate, deps: Sequence[dg.AssetsDefinition] = (), ledger: Iterable[str] = ()
) -> Callable[[Restate], dg.AssetsDefinition]:
    """Declare a table of the warehouse as an asset of the function's name.

    The gate is a blocking check of the same step: what depends on the table waits for it, and stops when it
    fails. (As a step of its own a check reads the keys of every partition there is, which takes seconds.)

    Args:
        group: The subject it belongs to.
        gate: What must hold of the rows.
        deps: The tables that it is computed from.
        ledger: The read views of the ledger that it is computed from.
    """
    views = [dg.AssetKey(["ledger_read", name]) for name in ledger]

    def declare(restate: Restate) -> dg.AssetsDefinition:
        name = restate.__name__
        RESTATES[name], GATES[name] = restate, gate

        def compute(
            context: dg.AssetExecutionContext,
            warehouse: Warehouse,
            data_docs: KeptDocs,
        ) -> dg.MaterializeResult:  # type: ignore[type-arg] # Dagster compares the annotation with the bare class
            span = span_of(context)
            with trying_again(context):
                rows = restated(warehouse, name, span)
                verdict = gate.run(warehouse.engine(), span, data_docs.docs(), run_id=context.run.run_id)
            notice_check(warehouse, name, span, verdict)
            return dg.MaterializeResult(metadata={"rows": rows}, check_results=[_result(verdict)])

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dg.BetaWarning)  # says that backfill_policy may change
            return dg.asset(
                name=name,
                description=restate.__doc__,
                partitions_def=DAY_AND_CLUSTER,
                # Hundreds of days are one run, and one statement per table.
                backfill_policy=dg.BackfillPolicy.single_run(),
                automation_condition=FOLLOWS if deps else None,
                freshness_policy=dg.FreshnessPolicy.time_window(
                    fail_window=2 * FRESH_FOR, warn_window=FRESH_FOR
                ),
                group_name=group,
                deps=[*deps, *views],
                kinds={"postgres"},
                check_specs=[dg.AssetCheckSpec(SUITE, asset=name, blocking=True, description=gate.__doc__)],
            )(compute)

    return declare


@contextmanager
def trying_again(context: dg.AssetExecutionContext) -> Iterator[None]:
    """Have the step tried again when the database went away, unless somebody waits for the run.

    Raises:
        dagster.RetryRequested: When it is to be tried again, later each time.
    """
    try:
        yield
    except (Unavailable, OperationalError) as error:
        if ONCE_TAG in context.run.tags:
            raise
        raise dg.RetryRequested(RETRIES, RETRY_AFTER_S * 2**context.retry_number) from error


def restated(warehouse: Warehouse, table: str, span: Span) -> int:
    """Restate one table over the span in one transaction; return the number of rows."""
    started = time.perf_counter()
    with warehouse.writing(table) as rewriting:
        rows = RESTATES[table](rewriting, span)
    elapsed_s = time.perf_counter() - started
    PROGRESS.info("%s: %s: %s rows in %.1f s", span.cluster, table, f"{rows:,}", elapsed_s)
    return rows


def _result(verdict: Verdict) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=SUITE,
        passed=verdict.passed,
        severity=dg.AssetCheckSeverity.WARN if verdict.outdated else dg.AssetCheckSeverity.ERROR,
        description=verdict.summary,
        metadata={
            "expectations": verdict.expectation_count,
            **_where(verdict),
            **{f.expectation: dg.MetadataValue.md(f.as_markdown()) for f in verdict.findings},
        },
    )


def _where(verdict: Verdict) -> dict[str, dg.MetadataValue[str]]:
    """Return where people read all that was tried, or why they cannot."""
    if verdict.unkept:
        return {"data docs": dg.MetadataValue.text(f"not kept: {verdict.unkept}")}
    if "://" in verdict.page:
        return {"data docs": dg.MetadataValue.url(verdict.page)}
    return {"data docs": dg.MetadataValue.path(verdict.page)} if verdict.page else {}
