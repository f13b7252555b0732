DROP VIEW ledger_read.rates, ledger_read.placements;
COMMENT ON COLUMN warehouse.budget_vs_actual.entitlement_gpu_ms IS 'gpu_ms: sum of E over the period''s hours; null without inventory';
COMMENT ON COLUMN warehouse.budget_vs_actual.demand_gpu_ms IS 'gpu_ms: sum of D';
COMMENT ON COLUMN warehouse.budget_vs_actual.owed_gpu_ms IS 'gpu_ms: sum of W; null without inventory';
COMMENT ON COLUMN warehouse.budget_vs_actual.delivered_gpu_ms IS 'gpu_ms: L, allocated time of the period''s buckets net of credits';
COMMENT ON COLUMN warehouse.forecast.delivered_gpu_ms IS 'gpu_ms: L net of credits, up to as_of_at, as budget_vs_actual has it';
