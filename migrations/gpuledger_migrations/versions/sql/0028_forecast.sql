CREATE TABLE warehouse.forecast (
    cluster TEXT NOT NULL,
    period TEXT NOT NULL,
    account TEXT NOT NULL,
    delivered_gpu_ms BIGINT NOT NULL,
    forecast_gpu_ms BIGINT,
    low_gpu_ms BIGINT,
    high_gpu_ms BIGINT,
    history_day_count BIGINT NOT NULL,
    left_day_count BIGINT NOT NULL,
    as_of_at TIMESTAMPTZ NOT NULL,
    reason TEXT,
    CONSTRAINT pk_forecast PRIMARY KEY (cluster, period, account)
);
COMMENT ON TABLE warehouse.forecast IS 'what an account will have been delivered when the period ends, and the band that holds 80 % of futures';
COMMENT ON COLUMN warehouse.forecast.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.forecast.period IS 'the organisation''s period, such as 2017-10';
COMMENT ON COLUMN warehouse.forecast.account IS 'path of the account that it counts under';
COMMENT ON COLUMN warehouse.forecast.delivered_gpu_ms IS 'gpu_ms: L net of credits, up to as_of_at, as budget_vs_actual has it';
COMMENT ON COLUMN warehouse.forecast.forecast_gpu_ms IS 'gpu_ms: delivered by the end of the period, in the middle one of all futures; null: not known, for a reason';
COMMENT ON COLUMN warehouse.forecast.low_gpu_ms IS 'gpu_ms: less is delivered by the end of the period in one future of ten; null: not known, for a reason';
COMMENT ON COLUMN warehouse.forecast.high_gpu_ms IS 'gpu_ms: more is delivered by the end of the period in one future of ten; null: not known, for a reason';
COMMENT ON COLUMN warehouse.forecast.history_day_count IS 'whole days before as_of_at that are known without a gap, since the account had its first GPU';
COMMENT ON COLUMN warehouse.forecast.left_day_count IS 'days of the period that were not over at as_of_at';
COMMENT ON COLUMN warehouse.forecast.as_of_at IS 'nothing that happened later was looked at';
COMMENT ON COLUMN warehouse.forecast.reason IS 'why there is no forecast';

GRANT SELECT ON warehouse.forecast TO gpuledger_reader;
