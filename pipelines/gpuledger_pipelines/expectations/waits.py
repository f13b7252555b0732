"""What holds of waits: every wait of the ledger is counted once, and quantiles say no more than is known."""

from typing import TYPE_CHECKING

from gpuledger_pipelines.expectations.shape import Law, no_rows, one_of, shape
from gpuledger_pipelines.expectations.usage import CLASSES
from gpuledger_pipelines.gate import Subject, in_place
from gpuledger_pipelines.partitions import days_touched

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

KEY = ("cluster", "day", "account", "class", "size", "turn")
TURNS = ("first", "again")
COUNTS = ("request_count", "started_count", "at_once_count", "waiting_count", "withdrawn_count")
QUANTILES = ("p50_s", "p90_s", "p99_s")
LISTS = ("started_after_s", "unstarted_for_s")
COLUMNS = (*KEY, *COUNTS, *QUANTILES, "longest_s", *LISTS, "as_of_at")

_LISTED = """
    SELECT *, coalesce((SELECT sum(s) FROM unnest(started_after_s || unstarted_for_s) AS s), 0) AS listed_s,
           (SELECT max(s) FROM unnest(started_after_s || unstarted_for_s) AS s) AS most_s
    FROM batch
"""

# Waits that the ledger has over the days, by arithmetic of its own; those that began at once are in none.
_AGAINST_LEDGER = """
    SELECT coalesce(w.account, q.account) AS account, q.counted, q.counted_s, w.known, w.known_s
    FROM (
        SELECT account, sum(request_count - at_once_count) AS counted, sum(listed_s)::bigint AS counted_s
        FROM ({listed}) AS l GROUP BY 1
    ) AS q
    FULL JOIN (
        SELECT account, count(*) AS known, sum(length_s)::bigint AS known_s
        FROM (
            -- The parts of a wait that was cut where the request was changed abut: their lengths add up.
            SELECT (array_agg(account ORDER BY from_at DESC))[1] AS account,
                   sum(least(coalesce(floor(extract(epoch FROM to_at))::bigint, :now_s), :now_s)
                       - least(floor(extract(epoch FROM from_at))::bigint, :now_s)) AS length_s
            FROM ledger_read.waits
            WHERE cluster = :cluster AND coalesce(began_at, from_at) >= to_timestamp({start_s})
              AND coalesce(began_at, from_at) < to_timestamp(least({end_s}, :now_s))
            GROUP BY workload, coalesce(began_at, from_at)
        ) AS request
        GROUP BY 1
    ) AS w ON w.account = q.account
    WHERE (coalesce(q.counted, 0), coalesce(q.counted_s, 0)) IS DISTINCT FROM
          (coalesce(w.known, 0)::numeric, coalesce(w.known_s, 0))
"""


def queue_wait_day(subject: Subject) -> "list[Expectation]":
    """Return the suite of ``queue_wait_day``."""
    days = days_touched(subject.calendar, subject.span)
    against = _AGAINST_LEDGER.format(listed=_LISTED, start_s=days["starts"][0], end_s=days["ends"][-1])
    at = "day, account, class, size, turn"
    return [
        *shape(COLUMNS, key=KEY, amounts=(*COUNTS, *QUANTILES, "longest_s"), nullable=QUANTILES),
        one_of("class", CLASSES),
        one_of("turn", TURNS),
        no_rows(
            "requests were started, wait still, or were withdrawn",
            f"SELECT {at}, request_count, started_count, waiting_count, withdrawn_count FROM batch"
            " WHERE request_count <> started_count + waiting_count + withdrawn_count"
            " OR at_once_count > started_count OR request_count = 0",
            law=Law.DROPPED,
        ),
        no_rows(
            "every request is listed with how long it waited, and none longer than the longest",
            f"SELECT {at}, longest_s, most_s FROM ({_LISTED}) AS l"
            " WHERE cardinality(started_after_s) <> started_count"
            " OR cardinality(unstarted_for_s) <> waiting_count + withdrawn_count OR longest_s <> most_s"
            " OR 0 > ANY (started_after_s || unstarted_for_s)",
        ),
        no_rows(
            "quantiles rise, and what is not known of one is not known of a later one",
            f"SELECT {at}, p50_s, p90_s, p99_s, longest_s FROM batch"
            " WHERE p50_s > p90_s OR p90_s > p99_s OR greatest(p50_s, p90_s, p99_s) > longest_s"
            " OR (p50_s IS NULL AND p90_s IS NOT NULL) OR (p90_s IS NULL AND p99_s IS NOT NULL)",
        ),
        no_rows(
            "where everybody started, quantiles are those of the waits as they are listed",
            f"SELECT {at}, p50_s, p90_s, p99_s FROM batch WHERE cardinality(unstarted_for_s) = 0"
            " AND (p50_s, p90_s, p99_s) IS DISTINCT FROM (started_after_s[(started_count * 500 + 999) / 1000],"
            " started_after_s[(started_count * 900 + 999) / 1000],"
            " started_after_s[(started_count * 990 + 999) / 1000])",
        ),
        no_rows(
            "every wait of the ledger is counted once, with its length",
            in_place(against, subject),
            law=Law.DROPPED,
        ),
        no_rows(
            "who waits was counted up to the run's present",
            in_place(f"SELECT {at}, as_of_at FROM batch WHERE as_of_at <> to_timestamp(:now_s)", subject),
        ),
    ]
