-- When, before :to_s, the book says now what it did not say at journal row :seq: half-open intervals, in any order.
-- A version that was replaced by one that says the same of a time touches nothing there.
WITH
edge AS (
    SELECT to_timestamp(:to_s) AS to_at
),
moved AS (
    SELECT DISTINCT workload FROM ledger_read.segment_versions
    WHERE cluster = :cluster AND (since_seq > :seq OR until_seq > :seq)
),
segment AS (
    SELECT workload, run, account, class, user_token, gpus_milli, hosts, from_at, coalesce(until_at, 'infinity') AS to_at,
           since_seq <= :seq AND (until_seq IS NULL OR until_seq > :seq) AS before, until_seq IS NULL AS after
    FROM ledger_read.segment_versions
    WHERE cluster = :cluster AND workload IN (SELECT workload FROM moved)
),
held AS (
    SELECT range_agg(tstzrange(from_at, to_at)) FILTER (WHERE before) AS before,
           range_agg(tstzrange(from_at, to_at)) FILTER (WHERE after) AS after
    FROM segment
    WHERE from_at < to_at
    GROUP BY workload, run, account, class, user_token, gpus_milli, hosts
),
-- Waits end where a run starts, are of its class, and are the first of their workload or not.
started AS (
    SELECT workload, from_at FROM (
        SELECT workload, run, account, class, gpus_milli, from_at, bool_or(before) AS before, bool_or(after) AS after
        FROM segment
        GROUP BY 1, 2, 3, 4, 5, 6
    ) AS start
    WHERE before <> after
),
asked_again AS (
    SELECT DISTINCT workload FROM ledger_read.wait_versions
    WHERE cluster = :cluster AND (since_seq > :seq OR until_seq > :seq)
),
wait AS (
    SELECT workload, account, gpus_milli, gpu_model, minimum_runtime_s, from_at, to_at, coalesce(began_at, from_at) AS began_at,
           since_seq <= :seq AND (until_seq IS NULL OR until_seq > :seq) AS before, until_seq IS NULL AS after
    FROM ledger_read.wait_versions
    WHERE cluster = :cluster AND workload IN (SELECT workload FROM asked_again)
),
waited AS (
    SELECT range_agg(tstzrange(from_at, coalesce(to_at, 'infinity'))) FILTER (WHERE before) AS before,
           range_agg(tstzrange(from_at, coalesce(to_at, 'infinity'))) FILTER (WHERE after) AS after
    FROM wait
    WHERE minimum_runtime_s > 0
    GROUP BY workload, account, gpus_milli, gpu_model
),
-- The tables by day count a wait where it begins, whenever it ends, and whatever of it was changed since.
begun AS (
    SELECT began_at FROM (
        SELECT began_at, bool_or(before) AS before, bool_or(after) AS after
        FROM wait
        GROUP BY workload, account, gpus_milli, minimum_runtime_s > 0, from_at, to_at, began_at
    ) AS begin
    WHERE before <> after
    UNION ALL
    SELECT coalesce(asked.began_at, asked.from_at)
    FROM started
    JOIN ledger_read.waits AS asked ON asked.cluster = :cluster AND asked.workload = started.workload
    WHERE asked.to_at >= started.from_at
    UNION ALL
    SELECT later.from_at
    FROM started
    JOIN ledger_read.segments AS later ON later.cluster = :cluster AND later.workload = started.workload
    WHERE later.from_at > started.from_at
    UNION ALL
    -- Who starts at once is counted when somebody is known to have asked for it.
    SELECT run.from_at
    FROM ledger_read.asked
    JOIN ledger_read.segments AS run ON run.cluster = :cluster AND run.workload = asked.workload
    WHERE asked.cluster = :cluster AND asked.seq > :seq
      AND NOT EXISTS (
          SELECT FROM ledger_read.asked AS already
          WHERE already.cluster = :cluster AND already.workload = asked.workload AND already.seq <= :seq
      )
),
host AS (
    SELECT host, gpus, gpu_model, state, from_at, coalesce(to_at, 'infinity') AS to_at,
           since_seq <= :seq AND (until_seq IS NULL OR until_seq > :seq) AS before, until_seq IS NULL AS after
    FROM ledger_read.host_versions
    WHERE cluster = :cluster
),
installed AS (
    SELECT range_agg(tstzrange(from_at, to_at)) FILTER (WHERE before) AS before,
           range_agg(tstzrange(from_at, to_at)) FILTER (WHERE after) AS after
    FROM host
    WHERE from_at < to_at
    GROUP BY host, gpus, gpu_model, state
),
-- Before the inventory begins nothing is known, and rows of that time say from when on it is.
inventory AS (
    SELECT min(from_at) FILTER (WHERE before) AS before, min(from_at) FILTER (WHERE after) AS after FROM host
),
share AS (
    SELECT account, share, from_at, lead(from_at, 1, 'infinity') OVER (PARTITION BY before, account ORDER BY from_at) AS to_at, before
    FROM (
        SELECT DISTINCT ON (before, account, from_at) before, account, from_at, share
        FROM ledger_read.share_versions
        JOIN (VALUES (true), (false)) AS side (before) ON NOT before OR set_seq <= :org_seq
        ORDER BY before, account, from_at, set_seq DESC
    ) AS newest
    WHERE EXISTS (SELECT FROM ledger_read.share_versions WHERE set_seq > :org_seq)
),
owned AS (
    SELECT range_agg(tstzrange(from_at, to_at)) FILTER (WHERE before) AS before,
           range_agg(tstzrange(from_at, to_at)) FILTER (WHERE NOT before) AS after
    FROM share
    GROUP BY account, share
),
touched AS (
    SELECT unnest((coalesce(before, '{}') - coalesce(after, '{}')) + (coalesce(after, '{}') - coalesce(before, '{}'))) AS span
    FROM (SELECT * FROM held UNION ALL SELECT * FROM waited UNION ALL SELECT * FROM installed UNION ALL SELECT * FROM owned) AS told
    UNION ALL
    SELECT tstzrange(began_at, began_at + interval '1 second') FROM begun
    UNION ALL
    SELECT tstzrange((SELECT min(from_at) FROM ledger_read.segments WHERE cluster = :cluster), greatest(before, after))
    FROM inventory
    WHERE before IS DISTINCT FROM after AND (SELECT min(from_at) FROM ledger_read.segments WHERE cluster = :cluster) < greatest(before, after)
    UNION ALL
    -- Whether a run squats at midnight is seen in the samples on both sides of it.
    SELECT tstzrange(hour_end_at - interval '1 hour' - :beyond_s * interval '1 second', hour_end_at + :beyond_s * interval '1 second')
    FROM ledger_read.seals
    WHERE cluster = :cluster AND seq > :seq
)
SELECT floor(extract(epoch FROM lower(part)))::bigint, ceil(extract(epoch FROM upper(part)))::bigint
FROM (SELECT range_agg(span * tstzrange('-infinity', to_at)) AS whole FROM touched CROSS JOIN edge) AS summed
CROSS JOIN LATERAL unnest(whole) AS part
ORDER BY 1
