-- Budget, what the account was owed and what it got, by period; the variance by cause sums (DESIGN section 5). All of it in
-- weighted units, as budgets are: owed_hour and usage_bucket have physical time, and the rate card what that weighs.
WITH period AS (
    SELECT period, to_timestamp(start_s) AS start_at, to_timestamp(end_s) AS end_at
    FROM unnest(CAST(:periods AS text[]), CAST(:starts AS bigint[]), CAST(:ends AS bigint[]))
        AS p (period, start_s, end_s)
),
-- Balances are kept in weighted units, gpu_ms x per mille; people and programs see gpu_ms, rounded down.
pot AS (
    SELECT period, account,
           floor(coalesce(sum(amount) FILTER (WHERE pot = 'budget' AND code IN ('grant', 'rollover')), 0) / 1000)::bigint AS budget,
           floor(coalesce(sum(amount) FILTER (WHERE pot = 'budget' AND code = 'transfer'), 0) / 1000)::bigint AS transferred,
           floor(coalesce(sum(amount) FILTER (WHERE pot = 'spent' AND code = 'charge'), 0) / 1000)::bigint AS charged,
           floor(coalesce(sum(amount) FILTER (WHERE pot = 'held'), 0) / 1000)::bigint AS held,
           floor(coalesce(sum(amount) FILTER (WHERE pot = 'credited'), 0) / 1000)::bigint AS credited,
           floor(coalesce(sum(amount) FILTER (WHERE pot = 'expired' AND code = 'expiry'), 0) / 1000)::bigint AS expired,
           floor(coalesce(sum(amount) FILTER (WHERE pot = 'unallocated'), 0) / 1000)::bigint AS unallocated
    FROM period
    JOIN ledger_read.balances USING (period)
    WHERE cluster = :cluster AND commodity = 'gpu_ms_weighted' AND account <> '~'
    GROUP BY 1, 2
),
-- include: inventory
,
-- include: weighed
,
edge_of_all AS (
    SELECT floor(extract(epoch FROM min(start_at)))::bigint AS from_s, floor(extract(epoch FROM max(end_at)))::bigint AS to_s
    FROM period
),
host AS (
    SELECT gpu_model, gpus * 1000 AS milli, greatest(floor(extract(epoch FROM from_at))::bigint, edge_of_all.from_s) AS from_s,
           least(floor(extract(epoch FROM to_at))::bigint, edge_of_all.to_s) AS to_s -- one that stays has no end
    FROM ledger_read.hosts
    CROSS JOIN edge_of_all
    WHERE cluster = :cluster AND EXISTS (SELECT FROM weighed)
),
-- What is there, what that weighs beyond 1000 per mille, and what allocated runs hold of such.
span AS (
    SELECT '' AS account, 'there' AS kind, milli::numeric AS milli, from_s, to_s FROM host
    UNION ALL
    SELECT '', 'dearer', milli * surplus, greatest(host.from_s, weighed.from_s), least(host.to_s, weighed.to_s)
    FROM host
    JOIN weighed ON model = gpu_model
    UNION ALL
    SELECT account, 'run', part.milli * surplus,
           greatest(floor(extract(epoch FROM from_at))::bigint, weighed.from_s, edge_of_all.from_s),
           least(floor(extract(epoch FROM until_at))::bigint, :now_s, weighed.to_s, edge_of_all.to_s)
    FROM ledger_read.segments AS segment
    CROSS JOIN edge_of_all
-- include: models
    WHERE segment.cluster = :cluster AND class = 'allocated' AND gpus_milli > 0
      AND from_at < to_timestamp(edge_of_all.to_s) AND (until_at IS NULL OR until_at > to_timestamp(edge_of_all.from_s))
),
-- include: integral
,
-- An hour of the cluster weighs what its GPUs weigh on average, each by the time that it was there.
hour AS (
    SELECT to_timestamp(bucket_s - bucket_s % 3600) AS hour_at,
           coalesce(sum(gpu_ms) FILTER (WHERE kind = 'dearer'), 0) / sum(gpu_ms) FILTER (WHERE kind = 'there') AS surplus
    FROM integral
    WHERE kind IN ('there', 'dearer')
    GROUP BY 1
),
-- What that adds to the sums below; without a rate card nothing is looked at.
dearer_owed AS (
    SELECT period, account, sum(entitlement_gpu_ms * surplus) AS entitlement, sum(demand_gpu_ms * surplus) AS demand,
           sum(owed_gpu_ms * surplus) AS owed
    FROM period
    JOIN warehouse.owed_hour ON cluster = :cluster AND hour_at >= start_at AND hour_at < end_at
    JOIN hour USING (hour_at)
    WHERE EXISTS (SELECT FROM weighed)
    GROUP BY 1, 2
),
dearer_gross AS (
    SELECT period, account, sum(run.gpu_ms) AS gross
    FROM period
    JOIN warehouse.usage_bucket AS usage ON cluster = :cluster AND bucket_at >= start_at AND bucket_at < end_at
    JOIN (SELECT account, to_timestamp(bucket_s) AS bucket_at, gpu_ms FROM integral WHERE kind = 'run') AS run
        USING (bucket_at, account)
    WHERE class = 'allocated' AND EXISTS (SELECT FROM weighed)
    GROUP BY 1, 2
),
owed AS (
    SELECT period, account, sum(entitlement_gpu_ms)::bigint AS entitlement, sum(demand_gpu_ms)::bigint AS demand,
           sum(owed_gpu_ms)::bigint AS owed
    FROM period
    JOIN warehouse.owed_hour ON cluster = :cluster AND hour_at >= start_at AND hour_at < end_at
    GROUP BY 1, 2
),
-- A period is known when the inventory begins before it ends, and before anybody ran or waited in it.
known AS (
    SELECT period, since < end_at AND bool_and(hour_at IS NULL OR entitlement_gpu_ms IS NOT NULL) IS TRUE AS known
    FROM period
    CROSS JOIN inventory
    LEFT JOIN warehouse.owed_hour ON cluster = :cluster AND hour_at >= start_at AND hour_at < end_at
    GROUP BY period, since, end_at
),
gross AS (
    SELECT period, account, sum(gpu_ms)::bigint AS gross
    FROM period
    JOIN warehouse.usage_bucket ON cluster = :cluster AND bucket_at >= start_at AND bucket_at < end_at
    WHERE class = 'allocated'
    GROUP BY 1, 2
),
line AS (
    SELECT period, account,
           coalesce(budget, 0) AS budget, coalesce(transferred, 0) AS transferred, coalesce(charged, 0) AS charged,
           coalesce(held, 0) AS held, coalesce(credited, 0) AS credited, coalesce(expired, 0) AS expired,
           coalesce(unallocated, 0) AS unallocated,
           CASE WHEN known THEN coalesce(owed.entitlement, 0) + coalesce(floor(dearer_owed.entitlement / 1000), 0)::bigint END AS entitlement,
           coalesce(owed.demand, 0) + coalesce(floor(dearer_owed.demand / 1000), 0)::bigint AS demand,
           CASE WHEN known THEN coalesce(owed.owed, 0) + coalesce(floor(dearer_owed.owed / 1000), 0)::bigint END AS owed,
           coalesce(gross.gross, 0) + coalesce(floor(dearer_gross.gross / 1000), 0)::bigint AS gross
    FROM pot
    FULL JOIN owed USING (period, account)
    FULL JOIN gross USING (period, account)
    LEFT JOIN dearer_owed USING (period, account)
    LEFT JOIN dearer_gross USING (period, account)
    JOIN known USING (period)
)
INSERT INTO warehouse.budget_vs_actual
    (cluster, period, account, budget_gpu_ms, transferred_gpu_ms, charged_gpu_ms, held_gpu_ms, credited_gpu_ms,
     expired_gpu_ms, available_gpu_ms, unallocated_gpu_ms, entitlement_gpu_ms, demand_gpu_ms, owed_gpu_ms,
     delivered_gpu_ms, variance_transfer_gpu_ms, variance_expiry_gpu_ms, variance_capacity_gpu_ms,
     variance_demand_gpu_ms, variance_scheduler_gpu_ms, variance_credit_gpu_ms)
SELECT :cluster, period, account, budget, transferred, charged, held, credited, expired,
       budget + transferred + credited - expired - charged - held,
       unallocated, entitlement, demand, owed, gross - credited,
       -- Without inventory nothing is known of entitlement, and no cause can be told from another.
       CASE WHEN entitlement IS NOT NULL THEN -transferred END,
       CASE WHEN entitlement IS NOT NULL THEN expired END,
       budget + transferred - expired - entitlement,
       entitlement - owed,
       owed - gross,
       CASE WHEN entitlement IS NOT NULL THEN credited END
FROM line
