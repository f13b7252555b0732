"""People are told within a minute of a roll-up, a failed check or a close, and again where they could not be reached.

Off until somebody turns it on, as the other sensors: turning it on is what makes notices be sent.
"""

import hashlib

import dagster as dg

from gpuledger.kernel.clock import iso
from gpuledger.notify import running
from gpuledger_pipelines.defs.notices.job import TELL, notifier_of
from gpuledger_pipelines.resources import Warehouse

INTERVAL_S = 60


@dg.sensor(
    name="notices",
    job_name=TELL,
    minimum_interval_seconds=INTERVAL_S,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Sends what follows from the last roll-up, from checks that failed and from closes, each once.",
)
def notices(context: dg.SensorEvaluationContext, warehouse: Warehouse) -> dg.RunRequest | dg.SkipReason:
    """Ask for a run where something is new or due."""
    del context  # what was told is the database's to know
    notifier = notifier_of(warehouse)
    if notifier is None:
        return dg.SkipReason("GPULEDGER_NOTIFICATIONS is not set: nobody is told anything")
    pending = running.pending(notifier)
    if not pending:
        return dg.SkipReason("nothing is new, and nothing is due")
    # The same is asked for once an hour: by then a run that was to do it has failed.
    hour = iso(notifier.clock.now())[: len("2026-12-01T04")]
    digest = hashlib.sha256("\n".join(pending).encode()).hexdigest()[:16]
    return dg.RunRequest(
        run_key=f"tell/{hour}/{digest}", run_config={"ops": {"notices": {"config": {"send": True}}}}
    )
