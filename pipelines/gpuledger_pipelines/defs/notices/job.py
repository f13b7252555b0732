"""``gpuledger notify run`` as a job."""

import dagster as dg

from gpuledger.kernel.clock import SystemClock
from gpuledger.notify import running
from gpuledger.notify.recipients import load_recipients
from gpuledger.notify.running import Notifier
from gpuledger.settings import load
from gpuledger_pipelines.resources import Warehouse

TELL = "tell"

AGAIN = dg.RetryPolicy(max_retries=3, delay=30)
"""A database that cannot be had now is waited for; a receiver that cannot be is tried again by a later run."""


class Telling(dg.Config):
    """Whether notices are really sent."""

    send: bool = False


def notifier_of(warehouse: Warehouse) -> Notifier | None:
    """Return who tells the recipients that the settings name; None where they name none."""
    config = load()
    recipients = load_recipients(config)
    if recipients is None:
        return None
    return running.notifier_of(config, warehouse.engine(), recipients, SystemClock())


@dg.op(name="notices", retry_policy=AGAIN)
def tell_notices(context: dg.OpExecutionContext, config: Telling, warehouse: Warehouse) -> None:
    """Notice what is new, and tell who is still to be told."""
    notifier = notifier_of(warehouse)
    if notifier is None:
        context.log.info("GPULEDGER_NOTIFICATIONS is not set: nobody is told anything")
        return
    told = running.run(notifier, send=config.send)
    context.add_output_metadata(
        {
            "dry run": not told.is_sent,
            "noticed": len(told.noticed),
            "sent": len(told.sent),
            "failed": len(told.failed),
            "waiting": len(told.waiting),
            "said": dg.MetadataValue.md("\n".join(f"- {target}: {said}" for _, target, said in told.failed)),
        }
    )


@dg.job(
    name=TELL,
    description="Webhooks and mail of what is new: gpuledger notify run. Sends where it is told to.",
)
def tell() -> None:
    """Run the one step."""
    tell_notices()
