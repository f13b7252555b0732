"""The calendar of a cluster from the ledger: what comes on its hosts, and to its budgets."""

import datetime as dt
from collections.abc import Iterator

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger import queries
from gpuledger.ledger import story as rows
from gpuledger.ledger.as_of import seq_of, vector_of
from gpuledger.ledger.knobs import read_config
from gpuledger.policy.agenda import Agenda, Entry, Kind, in_order, of_hosts
from gpuledger.policy.quotes import Certainty
from gpuledger.policy.reading import read_cadence, read_state
from gpuledger.policy.words import gpus, hours

PERIODS_AHEAD = 2
"""How many edges of periods are told."""


def upcoming(
    reader: Reader, cluster: str, *, at_s: int, calendar: Calendar, as_of: dt.datetime | None = None
) -> Agenda:
    """Return what is to come on a cluster, in order of time.

    Args:
        reader: A snapshot.
        cluster: The cluster.
        at_s: The present.
        calendar: The organisation's days.
        as_of: Recorded time: what the books said then; now unless given.

    Raises:
        NotFound: When the cluster does not exist.
        Refused: When it has no healthy GPUs.
    """
    queries.require_cluster(reader, cluster)
    vector = vector_of(reader, as_of)
    seq = seq_of(vector, cluster)
    config = read_config(reader, cluster, at_s, org_seq=seq_of(vector, ORG_BOOK))
    state = read_state(reader, cluster, at_s, config, vector=vector)
    cadence = read_cadence(reader, cluster, at_s, seq=seq)
    limits_s = rows.declared_limits(reader, cluster, at_s, seq=seq)
    entries = [
        *of_hosts(state, config, limits_s=limits_s, cadence=cadence),
        *_of_budgets(reader, cluster, at_s, calendar, seq),
    ]
    return Agenda(cluster, at_s, in_order(entries), cadence)


def _of_budgets(
    reader: Reader, cluster: str, at_s: int, calendar: Calendar, seq: int | None
) -> Iterator[Entry]:
    for workload, account, milli, expires_s in rows.unstarted_holds(reader, cluster, at_s, seq=seq):
        text = f"The hold of {workload} of {account} is given back, if it did not start on {gpus(milli)}."
        yield Entry(
            at_s=expires_s, kind=Kind.HOLD_EXPIRY, certainty=Certainty.BOUND, text=text, workload=workload,
            account=account, gpus_milli=milli,
        )  # fmt: skip
    for lapse in rows.lapses(reader, cluster, at_s, calendar, seq=seq):
        if lapse.on > calendar.days_of(lapse.period)[1]:
            continue  # it outlives its period, whose close ends it or carries it over
        lot = f"{hours(lapse.granted_gpu_ms)} of {lapse.period} ({lapse.name})"
        text = f"What {lapse.account} has left of {lot} lapses."
        yield Entry(
            at_s=calendar.day_start_s(lapse.on), kind=Kind.LOT_LAPSE, certainty=Certainty.BOUND, text=text,
            account=lapse.account,
        )  # fmt: skip
    period = calendar.period_of(calendar.day_of(at_s))
    for _ in range(PERIODS_AHEAD):
        _, end_s = calendar.period_bounds_s(period)
        following = calendar.following(period)
        text = f"{period} ends and {following} begins: what is left expires or goes on once it is closed."
        yield Entry(at_s=end_s, kind=Kind.PERIOD_EDGE, certainty=Certainty.BOUND, text=text)
        period = following
