-- Of a segment: the GPUs that it holds of each model (model, milli). A run on several models names the milli-GPU of each,
-- such as a100:4000,h100:4000; a name without amounts weighs as no model does.
CROSS JOIN LATERAL (
    SELECT segment.gpu_model AS model, segment.gpus_milli::numeric AS milli WHERE segment.gpu_model NOT LIKE '%,%'
    UNION ALL
    SELECT regexp_replace(named, ':[^:]*$', ''), segment.gpus_milli * size / nullif(sum(size) OVER (), 0)
    FROM string_to_table(segment.gpu_model, ',') AS named
    CROSS JOIN LATERAL (SELECT coalesce(substring(named FROM ':([0-9]+)$'), '0')::numeric AS size) AS sized
    WHERE segment.gpu_model LIKE '%,%'
) AS part
JOIN weighed ON weighed.model = part.model
