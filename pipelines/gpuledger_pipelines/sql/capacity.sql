-- Gives host (state, milli, from_s, to_s), the inventory in the window, and held (state, milli, from_s, to_s),
-- what runs held of GPUs that were not healthy. A run's GPUs lie on its hosts as was told of it (:seats and with it, from
-- when to when); where nothing was, they are spread evenly over the hosts it names, the odd milli-GPUs to the first. A run
-- that names no host is taken to be on healthy ones.
host AS (
    SELECT host, state, gpus * 1000 AS milli,
           greatest(floor(extract(epoch FROM from_at))::bigint, :from_s) AS from_s,
           least(coalesce(floor(extract(epoch FROM to_at))::bigint, :now_s), :to_s, :now_s) AS to_s
    FROM ledger_read.hosts
    WHERE cluster = :cluster
      AND from_at < to_timestamp(:to_s) AND (to_at IS NULL OR to_at > to_timestamp(:from_s))
),
seat AS (
    SELECT workload, run, from_s, to_s, each::jsonb AS each
    FROM unnest(CAST(:seat_workloads AS text[]), CAST(:seat_runs AS text[]), CAST(:seat_froms AS bigint[]),
                CAST(:seat_tos AS bigint[]), CAST(:seats AS text[])) AS told (workload, run, from_s, to_s, each)
),
-- The seats of a run leave no gap, so a segment is cut by them and lasts as long as before. What does not fit the segment
-- says nothing of it.
part AS (
    SELECT named.host,
           CASE WHEN jsonb_exists_all(each, segment.hosts)
                     AND (SELECT (count(*), sum(value::bigint)) FROM jsonb_each_text(each))
                         = (cardinality(segment.hosts)::bigint, segment.gpus_milli::numeric)
                THEN (each ->> named.host)::bigint
                ELSE segment.gpus_milli / cardinality(segment.hosts)
                     + (named.position <= segment.gpus_milli % cardinality(segment.hosts))::int
           END AS milli,
           greatest(floor(extract(epoch FROM segment.from_at))::bigint, seat.from_s) AS from_s,
           least(coalesce(floor(extract(epoch FROM segment.until_at))::bigint, :now_s), seat.to_s) AS to_s
    FROM ledger_read.segments AS segment
    LEFT JOIN seat ON seat.workload = segment.workload AND seat.run = segment.run
        AND seat.from_s < coalesce(extract(epoch FROM segment.until_at), :now_s)
        AND seat.to_s > extract(epoch FROM segment.from_at)
    CROSS JOIN LATERAL unnest(segment.hosts) WITH ORDINALITY AS named (host, position)
    WHERE segment.cluster = :cluster
      AND segment.from_at < to_timestamp(:to_s)
      AND (segment.until_at IS NULL OR segment.until_at > to_timestamp(:from_s))
),
-- Between two moments at which something changes on a host that is not all healthy: what runs occupy of it.
piece AS (
    SELECT host, at AS from_s, lead(at) OVER (PARTITION BY host ORDER BY at) AS to_s
    FROM (
        SELECT host, from_s AS at FROM host UNION SELECT host, to_s FROM host
        UNION SELECT host, from_s FROM part UNION SELECT host, to_s FROM part
    ) AS edge
    WHERE host IN (SELECT host FROM host WHERE state <> 'healthy')
),
occupied AS (
    SELECT piece.host, piece.from_s, piece.to_s, sum(part.milli) AS milli
    FROM piece
    JOIN part ON part.host = piece.host AND part.from_s <= piece.from_s AND part.to_s >= piece.to_s
    WHERE piece.from_s < piece.to_s
    GROUP BY 1, 2, 3
),
-- A run does not say which devices of a host it holds: healthy ones first, then those reserved. What a host
-- has not, the worst of its devices have.
held AS (
    SELECT state, from_s, to_s,
           greatest(0, CASE WHEN worse = 0 THEN occupied - before ELSE least(occupied - before, milli) END)::bigint AS milli
    FROM (
        SELECT host.state, occupied.from_s, occupied.to_s, host.milli, occupied.milli AS occupied,
               sum(host.milli) OVER better - host.milli AS before,
               count(*) OVER (PARTITION BY occupied.host, occupied.from_s) - row_number() OVER better AS worse
        FROM occupied
        JOIN host ON host.host = occupied.host
                 AND host.from_s <= occupied.from_s AND host.to_s >= occupied.to_s
        WINDOW better AS (PARTITION BY occupied.host, occupied.from_s
                          ORDER BY array_position(ARRAY['healthy', 'reserved', 'maintenance', 'draining', 'unhealthy'], host.state))
    ) AS spread
    WHERE state <> 'healthy'
)
