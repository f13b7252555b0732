-- Gives weighed (model, surplus, from_s, to_s): what the time of a GPU model weighs beyond 1000 per mille, below zero where
-- it weighs less, and from when to when. Without a rate card it has no row, and what joins it nothing to do.
weighed AS (
    SELECT gpu_model AS model, weight - 1000 AS surplus, floor(extract(epoch FROM from_at))::bigint AS from_s,
           coalesce(floor(extract(epoch FROM to_at))::bigint, 1099511627776) AS to_s
    FROM ledger_read.rates
    WHERE cluster = :cluster AND weight <> 1000
)
