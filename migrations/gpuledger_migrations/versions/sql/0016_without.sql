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
