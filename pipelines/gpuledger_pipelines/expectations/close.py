"""What holds of a statement before it is sealed: each budget is settled, and it is what the ledger's balances say."""

from typing import TYPE_CHECKING

from gpuledger_pipelines.expectations.shape import Law, no_rows, shape

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

KEY = ("cluster", "period", "version", "account")
SIGNED = (
    "rolled_in_gpu_ms_weighted", "transferred_gpu_ms_weighted", "expired_gpu_ms_weighted",
    "rolled_out_gpu_ms_weighted", "left_gpu_ms_weighted", "granted_gpu_ms_weighted",
)  # fmt: skip
"""May be below zero: debts, what was given away, an overrun, a grant that was taken back."""
UNSIGNED = (
    "credited_gpu_ms_weighted", "charged_gpu_ms_weighted", "held_gpu_ms_weighted",
    "unallocated_gpu_ms_weighted", "allocated_gpu_ms", "unallocated_gpu_ms",
)  # fmt: skip

_LEFT = (
    "granted_gpu_ms_weighted + rolled_in_gpu_ms_weighted + transferred_gpu_ms_weighted + credited_gpu_ms_weighted"
    " - charged_gpu_ms_weighted - held_gpu_ms_weighted - expired_gpu_ms_weighted"
)

# What an inner account owns itself is booked under its own name, and told as its leaf ~own.
_AGAINST_BALANCES = """
    SELECT account, charged_gpu_ms_weighted, expired_gpu_ms_weighted, held_gpu_ms_weighted, allocated_gpu_ms,
           charged, expired, held, allocated
    FROM (SELECT *, regexp_replace(account, '/~own$', '') AS owner FROM batch) AS told
    FULL JOIN (
        SELECT account AS owner,
               coalesce(sum(amount) FILTER (WHERE commodity = 'gpu_ms_weighted' AND pot = 'spent' AND code = 'charge'),
                        0)::bigint AS charged,
               coalesce(sum(amount) FILTER (WHERE commodity = 'gpu_ms_weighted' AND pot = 'expired'
                                            AND code = 'expiry'), 0)::bigint AS expired,
               coalesce(sum(amount) FILTER (WHERE commodity = 'gpu_ms_weighted' AND pot = 'held'), 0)::bigint AS held,
               coalesce(sum(amount) FILTER (WHERE commodity = 'gpu_ms' AND pot = 'spent' AND code = 'charge'),
                        0)::bigint AS allocated
        FROM ledger_read.balances
        WHERE cluster = {cluster} AND period = {period} AND account <> '~'
        GROUP BY 1 HAVING count(*) FILTER (WHERE amount <> 0) > 0
    ) AS booked USING (owner)
    WHERE (charged_gpu_ms_weighted, expired_gpu_ms_weighted, held_gpu_ms_weighted, allocated_gpu_ms)
          IS DISTINCT FROM (charged, expired, held, allocated)
"""


def statement(cluster: str, period: str) -> "list[Expectation]":
    """Return the suite of ``statement``.

    Args:
        cluster: The cluster, as SQL.
        period: The period, as SQL.
    """
    against = _AGAINST_BALANCES.replace("{cluster}", cluster).replace("{period}", period)
    return [
        *shape((*KEY, *SIGNED, *UNSIGNED), key=KEY, amounts=UNSIGNED),
        no_rows(
            "a settled budget is empty",
            "SELECT account, left_gpu_ms_weighted FROM batch WHERE left_gpu_ms_weighted <> 0",
            law=Law.CLOSED,
        ),
        no_rows(
            "what is left is what the movements leave",
            f"SELECT account, left_gpu_ms_weighted, {_LEFT} AS moved FROM batch WHERE left_gpu_ms_weighted <> {_LEFT}",
            law=Law.CONSERVATION,
        ),
        no_rows(
            "what one account gave to another sums to nothing",
            "SELECT sum(transferred_gpu_ms_weighted) AS transferred FROM batch"
            " HAVING sum(transferred_gpu_ms_weighted) <> 0",
            law=Law.CONSERVATION,
        ),
        no_rows("the statement is what the ledger's balances say", against, law=Law.CLOSED),
    ]
