-- What runs held on a day, cut at its edges. In an order that no collation of a database changes.
SELECT workload, run, account, class, user_token, gpus_milli, array_to_string(hosts, E'\x1f') AS hosts, from_s, to_s
FROM (
    SELECT workload, run, account, class, user_token, gpus_milli, hosts,
           greatest(floor(extract(epoch FROM from_at))::bigint, %(from_s)s) AS from_s,
           least(coalesce(floor(extract(epoch FROM until_at))::bigint, %(to_s)s), %(to_s)s) AS to_s
    FROM ledger_read.segments
    WHERE cluster = %(cluster)s AND gpus_milli > 0
      AND from_at < to_timestamp(%(to_s)s) AND (until_at IS NULL OR until_at > to_timestamp(%(from_s)s))
) AS held
WHERE from_s < to_s
ORDER BY from_s, workload COLLATE "C", run COLLATE "C", account COLLATE "C", class COLLATE "C", gpus_milli, to_s,
         user_token COLLATE "C", held.hosts::text COLLATE "C"
