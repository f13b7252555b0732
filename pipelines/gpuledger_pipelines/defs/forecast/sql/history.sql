-- What each account was delivered on each day, before credits, straight from the ledger: it knows every day, whatever was
-- rolled up. Days are numbered from 1; the last one is today, as far as it is over.
WITH held AS (
    SELECT account, gpus_milli, greatest(floor(extract(epoch FROM from_at))::bigint, :history_s) AS from_s,
           least(floor(extract(epoch FROM until_at))::bigint, :now_s) AS to_s -- an open run has no end; least() passes over it
    FROM ledger_read.segments
    WHERE cluster = :cluster AND class = 'allocated' AND gpus_milli > 0 AND from_at < to_timestamp(:now_s)
      AND (until_at IS NULL OR until_at > to_timestamp(:history_s))
)
SELECT account, number,
       sum(gpus_milli * (least(to_s, (CAST(:ends AS bigint[]))[number])
                         - greatest(from_s, (CAST(:starts AS bigint[]))[number])))::bigint AS gpu_ms
FROM held
CROSS JOIN LATERAL generate_series(
    width_bucket(from_s, CAST(:starts AS bigint[])), width_bucket(to_s - 1, CAST(:starts AS bigint[]))
) AS number
WHERE to_s > from_s
GROUP BY account, number
