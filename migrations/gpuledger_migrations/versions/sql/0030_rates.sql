-- What the time of a GPU model weighs over [from_at, to_at), in per mille, as the charges of each cluster follow it; a model
-- weighs 1000 where nothing is set. Of several set for one moment the later row of ~org counts.
CREATE VIEW ledger_read.rates AS
    SELECT cluster, gpu_model, weight, from_at,
           lead(from_at) OVER (PARTITION BY cluster, gpu_model ORDER BY from_at) AS to_at
    FROM (SELECT DISTINCT ON (book, model, effective_at) book AS cluster, model AS gpu_model, weight::bigint, effective_at AS from_at
          FROM ledger.journal CROSS JOIN LATERAL json_each_text(body -> 'weights') AS told (model, weight)
          WHERE workload IS NULL AND type = 'policy.applied' AND body ->> 'policy' = 'rate_card'
          ORDER BY book, model, effective_at, (body ->> 'org_seq')::bigint DESC) AS newest;
-- Where runs are: each start and resize as it was told, for amounts by host that segments do not hold. (Whoever joins it by
-- workload is served by the index of the facts of a workload, which a condition on the type alone would not be.)
CREATE VIEW ledger_read.placements AS
    SELECT book AS cluster, seq, workload, type, body::text AS body, effective_at, source, digest
    FROM ledger.journal WHERE workload IS NOT NULL AND type || '' IN ('workload.started', 'workload.resized');
GRANT SELECT ON ledger_read.rates, ledger_read.placements TO gpuledger_reader;

-- Budgets are weighted, and what is held against them is weighed alike.
COMMENT ON COLUMN warehouse.budget_vs_actual.entitlement_gpu_ms IS 'gpu_ms: sum of E over the period''s hours, weighted; null without inventory';
COMMENT ON COLUMN warehouse.budget_vs_actual.demand_gpu_ms IS 'gpu_ms: sum of D, weighted';
COMMENT ON COLUMN warehouse.budget_vs_actual.owed_gpu_ms IS 'gpu_ms: sum of W, weighted; null without inventory';
COMMENT ON COLUMN warehouse.budget_vs_actual.delivered_gpu_ms IS 'gpu_ms: L, allocated time of the period''s buckets net of credits, weighted';
COMMENT ON COLUMN warehouse.forecast.delivered_gpu_ms IS 'gpu_ms: L net of credits, weighted, up to as_of_at, as budget_vs_actual has it';
