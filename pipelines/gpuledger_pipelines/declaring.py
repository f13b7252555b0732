"""How an asset of the warehouse and the gate behind it are declared, so that all of them are alike."""

import warnings
from collections.abc import Callable, Iterable, Sequence

import dagster as dg

from gpuledger_pipelines.gate import Expect, Gate
from gpuledger_pipelines.partitions import DAY_AND_CLUSTER, span_of
from gpuledger_pipelines.resources import Warehouse

BUCKETS = "bucket_at >= to_timestamp(:from_s) AND bucket_at < to_timestamp(:to_s)"
HOURS = "hour_at >= to_timestamp(:from_s) AND hour_at < to_timestamp(:to_s)"

LEDGER_VIEWS = {
    "segments": "who held how many GPUs, from when to when",
    "waits": "who waited for how many GPUs, from when to when",
    "hosts": "which GPUs were installed, and in which state",
    "shares": "which share of which account was in force when",
    "accounts": "the program tree",
    "balances": "what was granted, charged and held, by period",
    "buckets": "samples of utilisation in buckets of five minutes",
}

Compute = Callable[..., dg.MaterializeResult[None]]


def ledger_specs() -> list[dg.AssetSpec]:
    """Return the ledger's read views, so that the lineage begins where the facts are."""
    return [
        dg.AssetSpec(["ledger_read", name], description=text, group_name="ledger", kinds={"postgres"})
        for name, text in LEDGER_VIEWS.items()
    ]


def warehouse_asset(
    *, group: str, deps: Sequence[dg.AssetsDefinition] = (), ledger: Iterable[str] = ()
) -> Callable[[Compute], dg.AssetsDefinition]:
    """Declare a table of the warehouse as an asset of the function's name.

    Args:
        group: The subject it belongs to.
        deps: The tables that it is computed from.
        ledger: The read views of the ledger that it is computed from.
    """
    views = [dg.AssetKey(["ledger_read", name]) for name in ledger]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # single-run backfills are a stable need of ours
        return dg.asset(
            partitions_def=DAY_AND_CLUSTER,
            # Hundreds of days are one run, and one statement per table.
            backfill_policy=dg.BackfillPolicy.single_run(),
            group_name=group,
            deps=[*deps, *views],
            kinds={"postgres"},
        )


def gate(
    asset: dg.AssetsDefinition, *, key: Sequence[str], where: str, expect: Expect
) -> dg.AssetChecksDefinition:
    """Declare the gate behind a table: what depends on the table waits for it, and stops when it fails.

    Args:
        asset: The table.
        key: The columns that name a row to a person.
        where: Which rows the run restated.
        expect: What must hold of them.
    """
    table = asset.key.path[-1]
    description = f"Great Expectations suite of warehouse.{table}"

    @dg.asset_check(asset=asset, name="suite", blocking=True, description=description)
    def check(context: dg.AssetCheckExecutionContext, warehouse: Warehouse) -> dg.AssetCheckResult:
        verdict = Gate(table, tuple(key), where, expect).run(warehouse.engine(), span_of(context))
        return dg.AssetCheckResult(
            passed=verdict.passed,
            severity=dg.AssetCheckSeverity.WARN if verdict.outdated else dg.AssetCheckSeverity.ERROR,
            description=verdict.summary,
            metadata={
                "expectations": verdict.expectation_count,
                **{f.expectation: dg.MetadataValue.md(f.as_markdown()) for f in verdict.findings},
            },
        )

    return check
