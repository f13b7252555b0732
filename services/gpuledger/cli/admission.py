"""``gpuledger admit``: ask what a scheduler asks before a start."""

from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.cli.options import Json, OneCluster
from gpuledger.cli.output import print_json

if TYPE_CHECKING:
    from gpuledger.database.engine import Writer
    from gpuledger.ledger.admission import Admission


def admit(
    workload: Annotated[str, typer.Argument(help="A workload that was submitted.")],
    cluster: OneCluster,
    *,
    as_json: Json = False,
) -> None:
    """Decide in which class the next attempt of a workload may run, and set aside what protects it."""
    from gpuledger import settings
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock, iso
    from gpuledger.ledger import admission, queries
    from gpuledger.ledger.attempts import booked

    config = settings.load()

    def ask(writer: "Writer") -> "Admission":
        calendar = queries.calendar(writer, config.calendar)
        return admission.admit(writer, cluster, workload, clock=SystemClock(), calendar=calendar)

    with open_database(config) as engine:
        found = booked(engine, cluster, ask)
    if as_json:
        print_json(found.as_json())
        return
    decision = found.decision
    print(f"{workload} attempt {decision.attempt}: {decision.klass}, protected for {decision.hold_s} s")
    print(f"{decision.reason}; start before {decision.expires_at and iso(decision.expires_at)}")
