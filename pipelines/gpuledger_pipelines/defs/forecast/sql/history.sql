-- What each account was delivered on each day, before credits, straight from the ledger: it knows every day, whatever was
-- rolled up. Weighted, as budgets are. Days are numbered from 1; the last one is today, as far as it is over.
WITH
-- include: weighed
,
held AS (
    SELECT account, gpus_milli, gpu_model, greatest(floor(extract(epoch FROM from_at))::bigint, :history_s) AS from_s,
           least(floor(extract(epoch FROM until_at))::bigint, :now_s) AS to_s -- an open run has no end; least() passes over it
    FROM ledger_read.segments
    WHERE cluster = :cluster AND class = 'allocated' AND gpus_milli > 0 AND from_at < to_timestamp(:now_s)
      AND (until_at IS NULL OR until_at > to_timestamp(:history_s))
),
span AS (
    SELECT account, gpus_milli * 1000::numeric AS weighted_milli, from_s, to_s FROM held
    UNION ALL
    SELECT account, part.milli * surplus, greatest(segment.from_s, weighed.from_s), least(segment.to_s, weighed.to_s)
    FROM held AS segment
-- include: models
)
SELECT account, number,
       floor(sum(weighted_milli * (least(to_s, (CAST(:ends AS bigint[]))[number])
                                   - greatest(from_s, (CAST(:starts AS bigint[]))[number]))) / 1000)::bigint AS gpu_ms
FROM span
CROSS JOIN LATERAL generate_series(
    width_bucket(from_s, CAST(:starts AS bigint[])), width_bucket(to_s - 1, CAST(:starts AS bigint[]))
) AS number
WHERE to_s > from_s
GROUP BY account, number
