"""What holds of budget versus actual: the causes sum to the variance, and charges are what segments say."""

from typing import TYPE_CHECKING

from gpuledger_pipelines.expectations.shape import Law, no_rows, shape
from gpuledger_pipelines.gate import Subject, in_place

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

KEY = ("cluster", "period", "account")
POTS = (
    "budget_gpu_ms", "transferred_gpu_ms", "charged_gpu_ms", "held_gpu_ms", "credited_gpu_ms", "expired_gpu_ms",
    "available_gpu_ms", "unallocated_gpu_ms",
)  # fmt: skip
ACTUAL = ("entitlement_gpu_ms", "demand_gpu_ms", "owed_gpu_ms", "delivered_gpu_ms")
CAUSES = (
    "variance_transfer_gpu_ms", "variance_expiry_gpu_ms", "variance_capacity_gpu_ms", "variance_demand_gpu_ms",
    "variance_scheduler_gpu_ms", "variance_credit_gpu_ms",
)  # fmt: skip
ANY_SIGN = ("budget_gpu_ms", "transferred_gpu_ms", "available_gpu_ms")
"""A debt is carried into a budget below zero, and an adjustment may take back more than was granted."""
CORRECTED = ("charged_gpu_ms", "held_gpu_ms", "credited_gpu_ms", "unallocated_gpu_ms", "delivered_gpu_ms")
"""Net amounts of facts, never below zero as known: what a shut period has too much of is taken back in a later one."""
MAY_BE_NEGATIVE = (*ANY_SIGN, *CORRECTED, "expired_gpu_ms")

# Physics is restated where it belongs, so entitlement, demand and what is owed are in no case below zero. A period that
# was reopened counts as shut: what was booked in later ones meanwhile stays there. Its own close expires an overrun.
_BELOW_ZERO = f"""
    SELECT period, account, {", ".join((*CORRECTED, "expired_gpu_ms"))}
    FROM batch
    CROSS JOIN LATERAL (
        SELECT coalesce(bool_or(shut.period < batch.period), false) AS earlier, count(*) > 0 AS earlier_or_itself
        FROM ledger_read.periods AS shut
        WHERE shut.cluster = :cluster AND shut.version > 0 AND shut.period <= batch.period
    ) AS was_shut
    WHERE (least({", ".join(CORRECTED)}) < 0 AND NOT earlier)
       OR (expired_gpu_ms < 0 AND NOT earlier_or_itself)
"""

_AGAINST_SEGMENTS = """
    SELECT booked.account, booked.gpu_ms AS booked_gpu_ms, coalesce(held.gpu_ms, 0) AS segment_gpu_ms
    FROM (
        SELECT account, sum(amount) AS gpu_ms FROM ledger_read.balances
        WHERE cluster = :cluster AND commodity = 'gpu_ms' AND pot IN ('spent', 'unallocated')
          AND code IN ('charge', 'unallocated')
        GROUP BY 1
    ) AS booked
    FULL JOIN (
        -- Open runs are booked up to the newest tick.
        SELECT account, sum(gpus_milli * floor(extract(epoch FROM upto.upto_at - from_at))::bigint) AS gpu_ms
        FROM ledger_read.segments AS segment
        JOIN ledger_read.books AS book ON book.book = segment.cluster
        CROSS JOIN LATERAL (SELECT coalesce(to_at, least(ticked_at, until_at)) AS upto_at) AS upto
        WHERE cluster = :cluster AND gpus_milli > 0 AND upto.upto_at > from_at
          AND (to_at IS NOT NULL OR ticked_at IS NOT NULL)
        GROUP BY 1
    ) AS held USING (account)
    WHERE coalesce(booked.gpu_ms, 0) <> coalesce(held.gpu_ms, 0)
      AND EXISTS (SELECT FROM batch)
"""


def budget_vs_actual(subject: Subject) -> "list[Expectation]":
    """Return the suite of ``budget_vs_actual``."""
    amounts = [name for name in (*POTS, *ACTUAL) if name not in MAY_BE_NEGATIVE]
    causes = " + ".join(CAUSES)
    return [
        *shape(
            (*KEY, *POTS, *ACTUAL, *CAUSES),
            key=KEY,
            amounts=amounts,
            nullable=("entitlement_gpu_ms", "owed_gpu_ms", *CAUSES),
        ),
        no_rows(
            "budget less delivered is the sum of its causes",
            f"SELECT period, account, budget_gpu_ms - delivered_gpu_ms AS variance_gpu_ms, {causes} AS causes_gpu_ms"
            f" FROM batch WHERE budget_gpu_ms - delivered_gpu_ms <> {causes}",
            law=Law.CONSERVATION,
        ),
        no_rows(
            "either every cause is known or none",
            f"SELECT period, account FROM batch WHERE num_nulls({', '.join(CAUSES)})"
            f" <> CASE WHEN entitlement_gpu_ms IS NULL THEN {len(CAUSES)} ELSE 0 END",
            law=Law.UNKNOWN,
        ),
        no_rows(
            "available is what the pots say",
            "SELECT period, account, available_gpu_ms FROM batch WHERE available_gpu_ms <> budget_gpu_ms"
            " + transferred_gpu_ms + credited_gpu_ms - expired_gpu_ms - charged_gpu_ms - held_gpu_ms",
            law=Law.CONSERVATION,
        ),
        no_rows(
            "what is below zero corrects a period that was shut before",
            in_place(_BELOW_ZERO, subject),
            law=Law.CLOSED,
        ),
        no_rows(
            "the ledger has booked what its closed segments held",
            in_place(_AGAINST_SEGMENTS, subject),
            law=Law.CONSERVATION,
        ),
    ]
