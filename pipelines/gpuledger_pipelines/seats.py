"""How many GPUs of a run lie on each of its hosts, where that was told: what segments do not hold (decision 0074)."""

import sqlalchemy as sa

from gpuledger.events.envelope import decode_data
from gpuledger.kernel.clock import seconds
from gpuledger.ledger.facts import Known
from gpuledger.ledger.spells import host_spells_of
from gpuledger_pipelines.partitions import Span
from gpuledger_pipelines.resources import Rewriting

# Facts of runs that were on several hosts in the window, where one of them tells amounts; others need not be decoded.
_TOLD = """
    WITH ran AS (
        SELECT DISTINCT workload FROM ledger_read.segments
        WHERE cluster = :cluster AND cardinality(hosts) > 1 AND from_at < to_timestamp(least(:to_s, :now_s))
          AND (until_at IS NULL OR until_at > to_timestamp(:from_s))
    ),
    told AS (
        SELECT DISTINCT workload FROM ran JOIN ledger_read.placements USING (workload)
        WHERE cluster = :cluster AND strpos(body, '"host_gpus_milli"') > 0
    )
    SELECT workload, type, body, effective_at, source, digest
    FROM told JOIN ledger_read.placements USING (workload)
    WHERE cluster = :cluster
    ORDER BY seq
"""


def seats_told(rewriting: Rewriting, span: Span) -> dict[str, list[str] | list[int] | list[str | None]]:
    """Return what ``sql/capacity.sql`` takes: from when to when which run held how many milli-GPU on which host.

    Read in the transaction that restates, so that it is of the same snapshot as the segments.
    """
    facts: dict[tuple[str, str], list[Known]] = {}
    for workload, type_, body, effective_at, source, digest in rewriting.connection.execute(
        sa.text(_TOLD), span.binds
    ):
        known = Known(decode_data(type_, body), seconds(effective_at), source, bytes(digest))
        facts.setdefault((span.cluster, workload), []).append(known)
    found = host_spells_of(facts)
    return {
        "seat_workloads": [spell.workload for spell in found],
        "seat_runs": [spell.run or "" for spell in found],
        "seat_froms": [spell.from_s for spell in found],
        "seat_tos": [spell.to_s for spell in found],
        "seats": [spell.said for spell in found],
    }
