-- Gives host (state, milli, from_s, to_s), the inventory in the window, and held (state, milli, from_s, to_s),
-- what runs held of hosts that were not healthy. A run's GPUs are spread evenly over the hosts it names, the
-- odd milli-GPUs to the first; a run that names no host is taken to be on healthy ones.
host AS (
    SELECT host, state, gpus * 1000 AS milli,
           greatest(floor(extract(epoch FROM from_at))::bigint, :from_s) AS from_s,
           least(coalesce(floor(extract(epoch FROM to_at))::bigint, :now_s), :to_s, :now_s) AS to_s
    FROM ledger_read.hosts
    WHERE cluster = :cluster
      AND from_at < to_timestamp(:to_s) AND (to_at IS NULL OR to_at > to_timestamp(:from_s))
),
part AS (
    SELECT named.host,
           segment.gpus_milli / cardinality(segment.hosts)
               + (named.position <= segment.gpus_milli % cardinality(segment.hosts))::int AS milli,
           floor(extract(epoch FROM segment.from_at))::bigint AS from_s,
           coalesce(floor(extract(epoch FROM segment.until_at))::bigint, :now_s) AS to_s
    FROM ledger_read.segments AS segment
    CROSS JOIN LATERAL unnest(segment.hosts) WITH ORDINALITY AS named (host, position)
    WHERE segment.cluster = :cluster
      AND segment.from_at < to_timestamp(:to_s)
      AND (segment.until_at IS NULL OR segment.until_at > to_timestamp(:from_s))
),
held AS (
    SELECT host.state, part.milli,
           greatest(host.from_s, part.from_s) AS from_s, least(host.to_s, part.to_s) AS to_s
    FROM host
    JOIN part USING (host)
    WHERE host.state <> 'healthy' AND host.from_s < part.to_s AND part.from_s < host.to_s
)
