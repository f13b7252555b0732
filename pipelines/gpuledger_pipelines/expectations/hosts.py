"""What holds of hosts: each of their GPUs is in one condition at a time, and together they are the cluster's."""

from typing import TYPE_CHECKING

from gpuledger_pipelines.expectations.shape import Law, day_rows, no_rows, one_of, shape
from gpuledger_pipelines.gate import Subject, in_place
from gpuledger_pipelines.partitions import days_touched

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

KEY = ("cluster", "day", "host")
CONDITIONS = ("healthy_gpu_ms", "reserved_gpu_ms", "maintenance_gpu_ms", "unhealthy_gpu_ms")
AMOUNTS = ("installed_gpu_ms", *CONDITIONS, "occupied_gpu_ms")
COUNTS = ("failure_count",)
STATES = ("healthy", "reserved", "maintenance", "draining", "unhealthy")

_AGAINST_INVENTORY = """
    SELECT coalesce(b.host, i.host) AS host, b.installed_gpu_ms, i.inventory_gpu_ms
    FROM (SELECT host, sum(installed_gpu_ms) AS installed_gpu_ms FROM batch GROUP BY 1) AS b
    FULL JOIN (
        SELECT host, sum(gpus * 1000 * (
                   least(coalesce(floor(extract(epoch FROM to_at))::bigint, :now_s), {end_s}, :now_s)
                   - greatest(floor(extract(epoch FROM from_at))::bigint, {start_s}))) AS inventory_gpu_ms
        FROM ledger_read.hosts
        WHERE cluster = :cluster AND from_at < to_timestamp(least({end_s}, :now_s))
          AND (to_at IS NULL OR to_at > to_timestamp({start_s}))
        GROUP BY 1
    ) AS i ON i.host = b.host
    WHERE coalesce(b.installed_gpu_ms, 0) <> coalesce(i.inventory_gpu_ms, 0)
"""

# Days that are in the range as a whole, and of which every bucket is known.
_AGAINST_STATES = """
    SELECT s.day, h.installed_gpu_ms, s.installed_gpu_ms AS states_gpu_ms, h.unhealthy_gpu_ms,
           s.unhealthy_gpu_ms AS states_unhealthy_gpu_ms
    FROM (
        SELECT day, sum(installed_gpu_ms) AS installed_gpu_ms,
               sum(unhealthy_gpu_ms + unhealthy_occupied_gpu_ms) AS unhealthy_gpu_ms
        FROM (VALUES {days}) AS edge (day, start_at, end_at)
        JOIN warehouse.gpu_bucket ON cluster = :cluster AND bucket_at >= start_at AND bucket_at < end_at
        WHERE start_at >= to_timestamp(:from_s) AND end_at <= to_timestamp(:to_s)
          AND start_at >= (SELECT min(from_at) FROM ledger_read.hosts WHERE cluster = :cluster)
        GROUP BY 1
    ) AS s
    LEFT JOIN (
        SELECT day, sum(installed_gpu_ms) AS installed_gpu_ms, sum(unhealthy_gpu_ms) AS unhealthy_gpu_ms
        FROM batch GROUP BY 1
    ) AS h ON h.day = s.day
    WHERE (coalesce(h.installed_gpu_ms, 0), coalesce(h.unhealthy_gpu_ms, 0))
          IS DISTINCT FROM (s.installed_gpu_ms, s.unhealthy_gpu_ms)
"""


def host_health_day(subject: Subject) -> "list[Expectation]":
    """Return the suite of ``host_health_day``."""
    touched = days_touched(subject.calendar, subject.span)
    inventory = _AGAINST_INVENTORY.format(start_s=touched["starts"][0], end_s=touched["ends"][-1])
    conditions = " + ".join(CONDITIONS)
    return [
        *shape((*KEY, "state", *AMOUNTS, *COUNTS), key=KEY, amounts=(*AMOUNTS, *COUNTS)),
        one_of("state", STATES),
        no_rows(
            "the conditions sum to what was installed",
            f"SELECT day, host, installed_gpu_ms, {conditions} AS conditions_gpu_ms FROM batch"
            f" WHERE installed_gpu_ms <> {conditions}",
            law=Law.PARTITION,
        ),
        no_rows(
            "installed is what the inventory says, by host", in_place(inventory, subject), law=Law.DROPPED
        ),
        no_rows(
            "together the hosts are the cluster, installed and unhealthy",
            in_place(_AGAINST_STATES.format(days=day_rows(touched)), subject),
            law=Law.CONSERVATION,
        ),
    ]
