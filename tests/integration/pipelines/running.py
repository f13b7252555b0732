"""Run the real job in this process, as Dagster would, without a folder of its own."""

import datetime as dt

import dagster as dg
import sqlalchemy as sa

from gpuledger_pipelines.declaring import GATES, RESTATES, restated
from gpuledger_pipelines.definitions import ASSETS, defs
from gpuledger_pipelines.partitions import CLUSTERS, NOW_TAG, Span, partition_key, range_tags
from gpuledger_pipelines.resources import Warehouse
from gpuledger_pipelines.schedules import ROLL_UP


def roll_up(
    url: str, first: dt.date, last: dt.date, *, now_s: int, cluster: str = "c", single: bool = False
) -> dg.ExecuteInProcessResult:
    """Restate the UTC days from first to last; as a run of one partition when ``single``."""
    tags = {NOW_TAG: str(now_s), **({} if single else range_tags(cluster, first, last))}
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(CLUSTERS, [cluster])
        return defs.resolve_job_def(ROLL_UP).execute_in_process(
            instance=instance,
            raise_on_error=False,
            tags=tags,
            partition_key=partition_key(cluster, first) if single else None,
            resources={"warehouse": Warehouse(url=url)},
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )


def restate(url: str, span: Span) -> dict[str, int]:
    """Restate every table over the span without Dagster, which is dear; return the rows that each wrote."""
    assert ASSETS  # imported: every table is declared
    warehouse = Warehouse(url=url)
    rows = {table: restated(warehouse, table, span) for table in RESTATES}
    warehouse.engine().dispose()
    return rows


def restate_one(url: str, table: str, span: Span) -> int:
    """Restate one table over the span; return the rows that it wrote."""
    warehouse = Warehouse(url=url)
    rows = restated(warehouse, table, span)
    warehouse.engine().dispose()
    return rows


def gates(url: str, span: Span) -> dict[str, str]:
    """Ask every gate about the span; return what those say that do not hold, by table."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    verdicts = {gate.table: gate.run(engine, span) for gate in GATES.values()}
    return {table: verdict.summary for table, verdict in verdicts.items() if not verdict.passed}


def failed_gates(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    """Gates that did not hold, by table."""
    return {e.asset_key.path[-1]: e for e in result.get_asset_check_evaluations() if not e.passed}


def materialised(result: dg.ExecuteInProcessResult) -> set[str]:
    """Tables that the run restated."""
    return {
        event.step_materialization_data.materialization.asset_key.path[-1]
        for event in result.get_asset_materialization_events()
    }


def why(result: dg.ExecuteInProcessResult) -> str:
    """What a failed run says, for the message of an assertion."""
    gates = [f"{table}: {e.description}" for table, e in failed_gates(result).items()]
    steps = [str(event.step_failure_data.error) for event in result.get_step_failure_events()]
    return "\n".join(gates + steps)
