-- Gives inventory (since): from when on the cluster's GPUs are known. Before, capacity is unknown and not zero.
inventory AS (
    SELECT min(from_at) AS since,
           'no inventory for cluster ' || :cluster
               || coalesce(' before ' || to_char(min(from_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24\:MI') || ' UTC', '')
               || ', gpuledger budget apply declares its GPUs' AS missing
    FROM ledger_read.hosts
    WHERE cluster = :cluster
)
