"""The thin room around the policy: read the state in one snapshot, decide, record, publish."""

from typing import Any

import sqlalchemy as sa

from gpuledger.database.engine import reading, writing
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, seconds
from gpuledger.ledger import queries
from gpuledger.ledger.admission import SLICE_S
from gpuledger.ledger.landing import land
from gpuledger.policy.configured import read_config
from gpuledger.policy.cycle import run_cycle
from gpuledger.policy.reading import read_state
from gpuledger.policy.recording import Decided, record


def issue_cycle(
    engine: sa.Engine, cluster: str, *, at_s: int, clock: Clock, calendar: Calendar, dry_run: bool = False
) -> dict[str, Any]:
    """Run the policy once for a cluster and, unless it is a dry run, record and queue the outcome.

    Before it, runs of hard accounts whose hold has run out get their next slice or become unallocated.

    Returns:
        The cycle under its published keys.

    Raises:
        NotFound: When the cluster has no book.
        Refused: When it has no healthy GPUs.
    """
    if not dry_run and abs(seconds(clock.now()) - at_s) < SLICE_S:  # a cycle of another time moves nobody now
        with writing(engine) as writer:
            land(writer, cluster, clock=clock, calendar=calendar)
    with reading(engine) as reader:
        config = read_config(reader, cluster, at_s)
        cluster_state = read_state(reader, cluster, at_s, config)
        sequences = queries.sequences(reader)
    decided = Decided.of(cluster_state, config, sequences, run_cycle(cluster_state, config))
    if not dry_run:
        with writing(engine) as writer:
            record(writer, decided, clock=clock, calendar=calendar)
    return decided.published
