DROP VIEW warehouse.entitlement_hour;
DROP VIEW warehouse.demand_hour;
DROP TABLE warehouse.gpu_hour;
DROP TABLE warehouse.gpu_bucket;

CREATE TABLE warehouse.capacity_bucket (
    cluster TEXT NOT NULL,
    bucket_at TIMESTAMP WITH TIME ZONE NOT NULL,
    installed_gpu_ms BIGINT NOT NULL,
    unhealthy_gpu_ms BIGINT NOT NULL,
    unhealthy_occupied_gpu_ms BIGINT NOT NULL,
    maintenance_gpu_ms BIGINT NOT NULL,
    CONSTRAINT pk_capacity_bucket PRIMARY KEY (cluster, bucket_at)
);
COMMENT ON TABLE warehouse.capacity_bucket IS 'what the inventory offered; no rows for a cluster without inventory';
COMMENT ON COLUMN warehouse.capacity_bucket.bucket_at IS 'start of 15 minutes UTC';
COMMENT ON COLUMN warehouse.capacity_bucket.unhealthy_gpu_ms IS 'unhealthy and empty';
COMMENT ON COLUMN warehouse.capacity_bucket.unhealthy_occupied_gpu_ms IS 'unhealthy while a run held it';
COMMENT ON COLUMN warehouse.capacity_bucket.maintenance_gpu_ms IS 'in maintenance or draining, and empty';
GRANT SELECT ON warehouse.capacity_bucket TO gpuledger_reader;

-- Few columns had a comment, and tables of layers and budgets none.
DO $$
DECLARE
    of_table regclass;
    of_column name;
BEGIN
    FOR of_table, of_column IN
        SELECT attrelid::regclass, attname
        FROM pg_description JOIN pg_attribute ON attrelid = objoid AND attnum = objsubid
        WHERE classoid = 'pg_class'::regclass AND objoid IN (
            'warehouse.usage_bucket'::regclass, 'warehouse.usage_hour'::regclass, 'warehouse.owed_hour'::regclass,
            'warehouse.watermark'::regclass, 'warehouse.layer_metrics_hour'::regclass,
            'warehouse.layer_metrics_day'::regclass, 'warehouse.budget_vs_actual'::regclass)
    LOOP
        EXECUTE format('COMMENT ON COLUMN %s.%I IS NULL', of_table, of_column);
    END LOOP;
END $$;
COMMENT ON COLUMN warehouse.usage_bucket.bucket_at IS 'start of 15 minutes UTC';
COMMENT ON COLUMN warehouse.usage_bucket."class" IS 'allocated or unallocated';
COMMENT ON COLUMN warehouse.usage_hour.hour_at IS 'start of the hour, UTC';
COMMENT ON COLUMN warehouse.watermark.ledger_seq IS 'newest journal row when usage was last read';
COMMENT ON COLUMN warehouse.watermark.as_of_at IS 'open runs were counted up to here';
COMMENT ON COLUMN warehouse.layer_metrics_hour.reason IS 'why columns are null';
COMMENT ON COLUMN warehouse.layer_metrics_day.day IS 'in the organisation''s zone';
COMMENT ON COLUMN warehouse.layer_metrics_day.reason IS 'why columns are null';
COMMENT ON TABLE warehouse.layer_metrics_hour IS NULL;
COMMENT ON TABLE warehouse.layer_metrics_day IS NULL;
COMMENT ON TABLE warehouse.budget_vs_actual IS NULL;
