"""``gpuledger demo``: the whole path on real traces, in one folder."""

from typing import Annotated

import typer

from gpuledger.kernel.errors import Refused


def demo(
    once: Annotated[bool, typer.Option("--once", help="Stop after the summary.")] = False,
    kafka: Annotated[bool, typer.Option("--kafka", help="Send the traces through Kafka.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Delete the demo's folder.")] = False,
) -> None:
    """Run the whole path on real traces: import, budgets, roll-ups, policy cycles, a summary, then serve."""
    from gpuledger import settings
    from gpuledger.cli import demo_steps as steps

    config = settings.load()
    if remove:
        steps.remove(config)
        return
    if config.database_url is not None:
        raise Refused(
            "the demo runs on the embedded PostgreSQL only, and GPULEDGER_DATABASE_URL is set",
            hint="unset it for the demo: env -u GPULEDGER_DATABASE_URL gpuledger demo",
        )
    steps.run(config, once=once, kafka=kafka)
