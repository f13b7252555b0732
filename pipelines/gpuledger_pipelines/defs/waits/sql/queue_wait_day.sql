-- How long requests waited, by the day on which they could first run. Who waits still, or was withdrawn, waited at
-- least so long: the quantiles are those of the product-limit estimate (Kaplan and Meier), exact to the second.
WITH
day AS (
    SELECT day, to_timestamp(start_s) AS start_at, to_timestamp(least(end_s, :now_s)) AS end_at
    FROM unnest(CAST(:days AS date[]), CAST(:starts AS bigint[]), CAST(:ends AS bigint[])) AS d (day, start_s, end_s)
),
-- A wait is over when a run of its workload starts at its end; without such a run the request was withdrawn. Its class
-- is that of the run, and without one what was asked for: minimum runtime 0 asks for unallocated time.
-- What is changed of a request that waits cuts its wait in two: it counts once, from when it began, as it asks at last.
changed AS MATERIALIZED (
    SELECT DISTINCT ON (workload, began_at) workload, began_at, account, gpus_milli, minimum_runtime_s, to_at
    FROM ledger_read.waits
    WHERE cluster = :cluster AND began_at IS NOT NULL AND began_at >= (SELECT min(start_at) FROM day)
    ORDER BY workload, began_at, from_at DESC
),
asked AS (
    SELECT day.day, told.workload, told.from_at, coalesce(changed.account, told.account) AS account,
           coalesce(changed.gpus_milli, told.gpus_milli) AS gpus_milli,
           coalesce(changed.minimum_runtime_s, told.minimum_runtime_s) AS minimum_runtime_s,
           CASE WHEN changed.workload IS NULL THEN told.to_at ELSE changed.to_at END AS to_at
    FROM day
    JOIN ledger_read.waits AS told
        ON told.cluster = :cluster AND told.from_at >= day.start_at AND told.from_at < day.end_at
           AND told.began_at IS NULL
    LEFT JOIN changed ON changed.workload = told.workload AND changed.began_at = told.from_at
),
waited AS (
    SELECT asked.day, asked.account,
           coalesce(started.class, CASE WHEN asked.minimum_runtime_s > 0 THEN 'allocated' ELSE 'unallocated' END) AS class,
           asked.gpus_milli,
           CASE WHEN earlier.found THEN 'again' ELSE 'first' END AS turn,
           floor(extract(epoch FROM least(coalesce(asked.to_at, to_timestamp(:now_s)), to_timestamp(:now_s))))::bigint
               - floor(extract(epoch FROM asked.from_at))::bigint AS length_s,
           CASE WHEN started.class IS NOT NULL THEN 'started'
                WHEN asked.to_at IS NULL OR asked.to_at > to_timestamp(:now_s) THEN 'waiting'
                ELSE 'withdrawn' END AS outcome,
           false AS at_once
    FROM asked
    LEFT JOIN LATERAL (
        SELECT run.class
        FROM ledger_read.segments AS run
        WHERE run.cluster = :cluster AND run.workload = asked.workload AND run.from_at = asked.to_at
          AND run.from_at <= to_timestamp(:now_s)
        ORDER BY run.run
        LIMIT 1
    ) AS started ON true
    CROSS JOIN LATERAL (
        SELECT EXISTS (
            SELECT FROM ledger_read.segments AS run
            WHERE run.cluster = :cluster AND run.workload = asked.workload AND run.from_at < asked.from_at
        ) AS found
    ) AS earlier
),
-- Who starts in the second in which it could first run has no wait in the ledger, and waited 0 s all the same. Of a
-- run that nobody submitted nothing is known.
begun AS (
    SELECT day.day, run.workload, run.run, run.account, run.class, run.gpus_milli, run.from_at
    FROM day
    JOIN ledger_read.segments AS run
        ON run.cluster = :cluster AND run.gpus_milli > 0 AND run.from_at >= day.start_at AND run.from_at < day.end_at
),
-- OFFSET 0 keeps each a look-up of one workload: a join over all there are grows with their square.
at_once AS (
    SELECT day, account, class, gpus_milli, CASE WHEN before.parts > 0 THEN 'again' ELSE 'first' END AS turn,
           0::bigint AS length_s, 'started' AS outcome, true AS at_once
    FROM begun
    CROSS JOIN LATERAL (
        SELECT count(*) AS parts, count(*) FILTER (WHERE part.run = begun.run) AS own_parts
        FROM (
            SELECT run.run FROM ledger_read.segments AS run
            WHERE run.cluster = :cluster AND run.workload = begun.workload AND run.from_at < begun.from_at
            OFFSET 0
        ) AS part
    ) AS before
    WHERE before.own_parts = 0
      AND EXISTS (
          SELECT FROM ledger_read.submissions AS told
          WHERE told.cluster = :cluster AND told.workload = begun.workload
          OFFSET 0
      )
      AND NOT EXISTS (
          SELECT FROM ledger_read.waits AS asked
          WHERE asked.cluster = :cluster AND asked.workload = begun.workload AND asked.to_at = begun.from_at
          OFFSET 0
      )
),
request AS (
    SELECT * FROM waited UNION ALL SELECT * FROM at_once
),
-- The size as simulations name it: <1, 1, 2, 3-4, 5-8 and so on, in GPUs.
size AS (
    SELECT gpus_milli,
           CASE WHEN gpus_milli < 1000 THEN '<1' WHEN most <= 2 THEN most::text
                ELSE (most / 2 + 1) || '-' || most END AS size
    FROM (SELECT DISTINCT gpus_milli FROM request) AS asked
    CROSS JOIN LATERAL (
        SELECT min(1::bigint << n) AS most
        FROM generate_series(0, 42) AS n
        WHERE (1::bigint << n) * 1000 >= gpus_milli
    ) AS power
),
sized AS (
    SELECT day, account, class, size, turn, length_s, outcome, at_once FROM request JOIN size USING (gpus_milli)
),
-- Among how many something was over after just so long: all that were seen to wait at least so long.
risk AS (
    SELECT day, account, class, size, turn, length_s, count(*) FILTER (WHERE outcome = 'started') AS over,
           sum(count(*)) OVER (PARTITION BY day, account, class, size, turn ORDER BY length_s DESC) AS at_risk
    FROM sized
    GROUP BY 1, 2, 3, 4, 5, 6
),
-- What lasts longer is the product of (at_risk - over) / at_risk. From one length to the next they cancel out, except
-- where somebody was lost from sight in between; only those are multiplied, as whole numbers.
step AS (
    SELECT *, at_risk - over AS left_over, lag(at_risk - over) OVER series AS before
    FROM risk
    WHERE over > 0
    WINDOW series AS (PARTITION BY day, account, class, size, turn ORDER BY length_s)
),
curve AS (
    SELECT day, account, class, size, turn, length_s,
           left_over * warehouse.product(CASE WHEN at_risk <> before THEN before ELSE 1 END) OVER series AS surviving,
           warehouse.product(CASE WHEN at_risk IS DISTINCT FROM before THEN at_risk ELSE 1 END) OVER series AS of
    FROM step
    WINDOW series AS (PARTITION BY day, account, class, size, turn ORDER BY length_s)
),
quantile AS (
    SELECT day, account, class, size, turn,
           min(length_s) FILTER (WHERE (of - surviving) * 1000 >= 500 * of) AS p50_s,
           min(length_s) FILTER (WHERE (of - surviving) * 1000 >= 900 * of) AS p90_s,
           min(length_s) FILTER (WHERE (of - surviving) * 1000 >= 990 * of) AS p99_s
    FROM curve
    GROUP BY 1, 2, 3, 4, 5
)
INSERT INTO warehouse.queue_wait_day
    (cluster, day, account, class, size, turn, request_count, started_count, at_once_count, waiting_count,
     withdrawn_count, p50_s, p90_s, p99_s, longest_s, started_after_s, unstarted_for_s, as_of_at)
SELECT :cluster, day, account, class, size, turn, count(*),
       count(*) FILTER (WHERE outcome = 'started'), count(*) FILTER (WHERE at_once),
       count(*) FILTER (WHERE outcome = 'waiting'), count(*) FILTER (WHERE outcome = 'withdrawn'),
       max(p50_s), max(p90_s), max(p99_s), max(length_s),
       coalesce(array_agg(length_s ORDER BY length_s) FILTER (WHERE outcome = 'started'), '{}'),
       coalesce(array_agg(length_s ORDER BY length_s) FILTER (WHERE outcome <> 'started'), '{}'),
       to_timestamp(:now_s)
FROM sized
LEFT JOIN quantile USING (day, account, class, size, turn)
GROUP BY day, account, class, size, turn
