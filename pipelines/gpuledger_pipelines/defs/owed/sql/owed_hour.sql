-- Entitlement E, demand D, owed W = min(E, D) and delivered L by account and hour (DESIGN section 5).
-- version: intervals in which no share changes; portion: each leaf's exact part of the cluster in them.
WITH version AS (
    SELECT * FROM unnest(CAST(:versions AS bigint[]), CAST(:starts AS bigint[]), CAST(:ends AS bigint[]))
        AS v (version, from_s, to_s)
),
portion AS (
    SELECT * FROM unnest(
        CAST(:portion_versions AS bigint[]), CAST(:accounts AS text[]),
        CAST(:numerators AS numeric[]), CAST(:denominators AS numeric[])
    ) AS p (version, account, numerator, denominator)
),
-- include: capacity
,
-- Healthy capacity: healthy hosts, reserved or not, and what runs still held of hosts in maintenance.
healthy AS (
    SELECT milli, from_s, to_s FROM host WHERE state IN ('healthy', 'reserved')
    UNION ALL
    SELECT milli, from_s, to_s FROM held WHERE state IN ('maintenance', 'draining')
),
-- The most GPUs that were ever installed at once, of each model and (null) of all: what asks for more, or for a model that
-- was never there, can never run here, and is no demand. Hosts spell a model in any case of letters.
peak AS (
    SELECT model, max(milli) AS milli
    FROM (
        SELECT model, sum(sum(change)) OVER (PARTITION BY model ORDER BY at) AS milli
        FROM ledger_read.hosts
        CROSS JOIN LATERAL (VALUES (lower(gpu_model)), (NULL)) AS named (model)
        CROSS JOIN LATERAL (VALUES (from_at, gpus * 1000), (coalesce(to_at, 'infinity'), -gpus * 1000))
            AS edge (at, change)
        WHERE cluster = :cluster
        GROUP BY model, at
    ) AS levels
    GROUP BY model
),
span AS (
    SELECT version::text AS account, 'healthy' AS kind, milli,
           greatest(healthy.from_s, version.from_s) AS from_s, least(healthy.to_s, version.to_s) AS to_s
    FROM healthy
    JOIN version ON healthy.from_s < version.to_s AND version.from_s < healthy.to_s
    UNION ALL
    -- Minimum runtime 0 asks for unallocated time, which nobody is owed.
    SELECT account, 'waiting', gpus_milli,
           greatest(floor(extract(epoch FROM from_at))::bigint, :from_s),
           least(coalesce(floor(extract(epoch FROM to_at))::bigint, :now_s), :to_s, :now_s)
    FROM ledger_read.waits
    LEFT JOIN peak ON peak.model IS NOT DISTINCT FROM lower(gpu_model)
    WHERE cluster = :cluster AND minimum_runtime_s > 0
      -- Where no host was ever known nobody knows what fits.
      AND (gpus_milli <= peak.milli OR NOT EXISTS (SELECT FROM peak))
      AND from_at < to_timestamp(:to_s) AND (to_at IS NULL OR to_at > to_timestamp(:from_s))
),
-- include: integral
,
exact AS (
    SELECT bucket_s, version, account, denominator,
           div(gpu_ms * numerator, denominator) AS whole, mod(gpu_ms * numerator, denominator) AS remainder
    FROM (SELECT account::bigint AS version, bucket_s, gpu_ms FROM integral WHERE kind = 'healthy') AS capacity
    JOIN portion USING (version)
),
-- Largest remainder: the leaves' parts sum to the capacity, to the unit.
entitled AS (
    SELECT bucket_s, account,
           whole + (
               row_number() OVER (PARTITION BY bucket_s, version ORDER BY remainder DESC, account)
               <= div(sum(remainder) OVER (PARTITION BY bucket_s, version), denominator)
           )::int AS gpu_ms
    FROM exact
),
amount AS (
    SELECT bucket_s, account, gpu_ms AS entitled, 0 AS waiting, 0 AS running FROM entitled
    UNION ALL
    SELECT bucket_s, account, 0, gpu_ms, 0 FROM integral WHERE kind = 'waiting'
    UNION ALL
    SELECT floor(extract(epoch FROM hour_at))::bigint, account, 0, 0, gpu_ms
    FROM warehouse.usage_hour
    WHERE cluster = :cluster AND class = 'allocated'
      AND hour_at >= to_timestamp(:from_s) AND hour_at < to_timestamp(:to_s)
),
-- include: inventory
,
summed AS (
    SELECT bucket_s, account,
           CASE WHEN to_timestamp(bucket_s) >= since THEN sum(entitled) END AS entitlement,
           sum(waiting) + sum(running) AS demand,
           sum(running) AS delivered
    FROM amount
    CROSS JOIN inventory
    GROUP BY bucket_s, account, since
)
INSERT INTO warehouse.owed_hour
    (cluster, hour_at, account, entitlement_gpu_ms, demand_gpu_ms, owed_gpu_ms, delivered_gpu_ms)
SELECT :cluster, to_timestamp(bucket_s), account, entitlement::bigint, demand::bigint,
       -- least() would pass over the null of an unknown entitlement.
       CASE WHEN entitlement IS NOT NULL THEN least(entitlement, demand) END::bigint,
       delivered::bigint
FROM summed
WHERE entitlement > 0 OR demand > 0
