"""Everything Dagster is told, listed one by one: works from a checkout and from a wheel alike."""

import dagster as dg

from gpuledger_pipelines.declaring import ledger_specs
from gpuledger_pipelines.defs.archive.assets import archive
from gpuledger_pipelines.defs.archive.job import archive_what_is_new, archived
from gpuledger_pipelines.defs.budget import assets as budget
from gpuledger_pipelines.defs.close.job import PeriodClose, close_period
from gpuledger_pipelines.defs.close.schedules import closes
from gpuledger_pipelines.defs.forecast import assets as forecast
from gpuledger_pipelines.defs.hosts import assets as hosts
from gpuledger_pipelines.defs.late.sensors import watermark
from gpuledger_pipelines.defs.layers import assets as layers
from gpuledger_pipelines.defs.notices.job import tell
from gpuledger_pipelines.defs.notices.sensors import notices
from gpuledger_pipelines.defs.owed import assets as owed
from gpuledger_pipelines.defs.usage import assets as usage
from gpuledger_pipelines.defs.waits import assets as waits
from gpuledger_pipelines.defs.waste import assets as waste
from gpuledger_pipelines.resources import URL_VARIABLE, KeptDocs, Warehouse
from gpuledger_pipelines.schedules import ROLL_UP, hourly, nightly

ASSETS = (
    *usage.ASSETS,
    *owed.ASSETS,
    *layers.ASSETS,
    *budget.ASSETS,
    *forecast.ASSETS,
    *waits.ASSETS,
    *waste.ASSETS,
    *hosts.ASSETS,
)

roll_up = dg.define_asset_job(
    ROLL_UP,
    selection=dg.AssetSelection.assets(*ASSETS),
    description="Every table of the warehouse, each behind the gate of the one before.",
)

follow = dg.AutomationConditionSensorDefinition(
    "follow",
    target=dg.AssetSelection.assets(*ASSETS),
    default_status=dg.DefaultSensorStatus.STOPPED,
    minimum_interval_seconds=300,  # each look at some 20,000 days of each cluster takes seconds
    description="What depends on a table of today or yesterday that was restated alone is restated after it.",
)

defs = dg.Definitions(
    assets=[*ledger_specs(), *ASSETS, archive],
    jobs=[roll_up, close_period, archive_what_is_new, tell],
    schedules=[hourly, nightly, closes, archived],
    sensors=[watermark, follow, notices],
    resources={
        "warehouse": Warehouse(url=dg.EnvVar(URL_VARIABLE)),
        "data_docs": KeptDocs(),
        "close": PeriodClose.configure_at_launch(),
    },
    # The work is done by PostgreSQL; a process per step would only import the libraries again.
    executor=dg.in_process_executor,
)
