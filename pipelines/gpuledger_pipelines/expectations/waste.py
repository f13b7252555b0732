"""What holds of waste: it is a part of what was sampled, which is a part of what was charged, as usage has them."""

from typing import TYPE_CHECKING

from gpuledger_pipelines.expectations.shape import Law, day_rows, no_rows, shape
from gpuledger_pipelines.gate import Subject, in_place
from gpuledger_pipelines.partitions import days_touched

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

KEY = ("cluster", "day", "account", "user_token")
AMOUNTS = (
    "allocated_gpu_ms", "sampled_gpu_ms", "used_gpu_ms", "idle_gpu_ms", "squatted_gpu_ms", "low_gpu_ms",
)  # fmt: skip
COUNTS = ("squatting_run_count",)

_AGAINST_SEGMENTS = """
    SELECT coalesce(w.account, s.account) AS account, coalesce(w.user_token, s.user_token) AS user_token,
           w.allocated_gpu_ms, s.held_gpu_ms
    FROM (SELECT account, user_token, sum(allocated_gpu_ms) AS allocated_gpu_ms FROM batch GROUP BY 1, 2) AS w
    FULL JOIN (
        SELECT account, user_token, sum(gpus_milli * (
                   least(coalesce(floor(extract(epoch FROM until_at))::bigint, :now_s), {end_s}, :now_s)
                   - greatest(floor(extract(epoch FROM from_at))::bigint, {start_s}))) AS held_gpu_ms
        FROM ledger_read.segments
        WHERE cluster = :cluster AND class = 'allocated' AND gpus_milli > 0
          AND from_at < to_timestamp(least({end_s}, :now_s))
          AND (until_at IS NULL OR until_at > to_timestamp({start_s}))
        GROUP BY 1, 2
    ) AS s ON s.account = w.account AND s.user_token = w.user_token
    WHERE coalesce(w.allocated_gpu_ms, 0) <> coalesce(s.held_gpu_ms, 0)
"""

# Days at the edges of the range are whole here and in part in buckets, so only those inside it are compared.
_AGAINST_USAGE = """
    SELECT u.day, u.account, w.allocated_gpu_ms, u.allocated_gpu_ms AS usage_gpu_ms, w.sampled_gpu_ms,
           u.sampled_gpu_ms AS usage_sampled_gpu_ms
    FROM (
        SELECT day, account, sum(gpu_ms) AS allocated_gpu_ms, sum(sampled_gpu_ms) AS sampled_gpu_ms
        FROM (VALUES {days}) AS edge (day, start_at, end_at)
        JOIN warehouse.usage_bucket
            ON cluster = :cluster AND class = 'allocated' AND bucket_at >= start_at AND bucket_at < end_at
        WHERE start_at >= to_timestamp(:from_s) AND end_at <= to_timestamp(:to_s)
        GROUP BY 1, 2
    ) AS u
    LEFT JOIN (
        SELECT day, account, sum(allocated_gpu_ms) AS allocated_gpu_ms, sum(sampled_gpu_ms) AS sampled_gpu_ms
        FROM batch GROUP BY 1, 2
    ) AS w ON w.day = u.day AND w.account = u.account
    WHERE (coalesce(w.allocated_gpu_ms, 0), coalesce(w.sampled_gpu_ms, 0))
          IS DISTINCT FROM (u.allocated_gpu_ms, u.sampled_gpu_ms)
"""


def waste_day(subject: Subject) -> "list[Expectation]":
    """Return the suite of ``waste_day``."""
    touched = days_touched(subject.calendar, subject.span)
    held = _AGAINST_SEGMENTS.format(start_s=touched["starts"][0], end_s=touched["ends"][-1])
    at = "day, account, user_token"
    return [
        *shape((*KEY, *AMOUNTS, *COUNTS), key=KEY, amounts=(*AMOUNTS, *COUNTS)),
        no_rows(
            "squatted is a part of idle, idle and low are parts of sampled, and used is at most sampled",
            f"SELECT {at}, squatted_gpu_ms, idle_gpu_ms, low_gpu_ms, used_gpu_ms, sampled_gpu_ms FROM batch"
            " WHERE squatted_gpu_ms > idle_gpu_ms OR idle_gpu_ms + low_gpu_ms > sampled_gpu_ms"
            " OR used_gpu_ms > sampled_gpu_ms",
            law=Law.UNKNOWN,
        ),
        no_rows(
            "who squats does it with a run",
            f"SELECT {at}, squatted_gpu_ms, squatting_run_count FROM batch"
            " WHERE (squatted_gpu_ms > 0) <> (squatting_run_count > 0)",
        ),
        no_rows(
            "allocated is what runs of the ledger held, by person", in_place(held, subject), law=Law.DROPPED
        ),
        no_rows(
            "allocated and sampled of a day are those of its usage",
            in_place(_AGAINST_USAGE.format(days=day_rows(touched)), subject),
            law=Law.CONSERVATION,
        ),
    ]
