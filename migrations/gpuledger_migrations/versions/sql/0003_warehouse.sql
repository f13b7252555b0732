CREATE SCHEMA warehouse;

CREATE TABLE warehouse.budget_vs_actual (
	cluster TEXT NOT NULL, 
	period TEXT NOT NULL, 
	account TEXT NOT NULL, 
	budget_gpu_ms BIGINT NOT NULL, 
	transferred_gpu_ms BIGINT NOT NULL, 
	charged_gpu_ms BIGINT NOT NULL, 
	held_gpu_ms BIGINT NOT NULL, 
	credited_gpu_ms BIGINT NOT NULL, 
	expired_gpu_ms BIGINT NOT NULL, 
	available_gpu_ms BIGINT NOT NULL, 
	unallocated_gpu_ms BIGINT NOT NULL, 
	entitlement_gpu_ms BIGINT, 
	demand_gpu_ms BIGINT, 
	owed_gpu_ms BIGINT, 
	delivered_gpu_ms BIGINT, 
	variance_transfer_gpu_ms BIGINT, 
	variance_expiry_gpu_ms BIGINT, 
	variance_capacity_gpu_ms BIGINT, 
	variance_demand_gpu_ms BIGINT, 
	variance_scheduler_gpu_ms BIGINT, 
	variance_credit_gpu_ms BIGINT, 
	CONSTRAINT pk_budget_vs_actual PRIMARY KEY (cluster, period, account)
);

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

CREATE TABLE warehouse.layer_metrics_day (
	cluster TEXT NOT NULL, 
	day DATE NOT NULL, 
	installed_gpu_ms BIGINT, 
	unhealthy_gpu_ms BIGINT, 
	maintenance_gpu_ms BIGINT, 
	unhealthy_occupied_gpu_ms BIGINT, 
	allocated_gpu_ms BIGINT NOT NULL, 
	unallocated_gpu_ms BIGINT NOT NULL, 
	overhead_gpu_ms BIGINT, 
	reserved_gpu_ms BIGINT, 
	free_gpu_ms BIGINT, 
	lost_gpu_ms BIGINT, 
	unknown_gpu_ms BIGINT, 
	residual_gpu_ms BIGINT, 
	owed_gpu_ms BIGINT, 
	delivered_gpu_ms BIGINT NOT NULL, 
	hourly_met_gpu_ms BIGINT, 
	sampled_gpu_ms BIGINT NOT NULL, 
	used_gpu_ms BIGINT NOT NULL, 
	reason TEXT, 
	CONSTRAINT pk_layer_metrics_day PRIMARY KEY (cluster, day)
);
COMMENT ON COLUMN warehouse.layer_metrics_day.day IS 'in the organisation''s zone';
COMMENT ON COLUMN warehouse.layer_metrics_day.reason IS 'why columns are null';

CREATE TABLE warehouse.layer_metrics_hour (
	cluster TEXT NOT NULL, 
	hour_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	installed_gpu_ms BIGINT, 
	unhealthy_gpu_ms BIGINT, 
	maintenance_gpu_ms BIGINT, 
	unhealthy_occupied_gpu_ms BIGINT, 
	allocated_gpu_ms BIGINT NOT NULL, 
	unallocated_gpu_ms BIGINT NOT NULL, 
	overhead_gpu_ms BIGINT, 
	reserved_gpu_ms BIGINT, 
	free_gpu_ms BIGINT, 
	lost_gpu_ms BIGINT, 
	unknown_gpu_ms BIGINT, 
	residual_gpu_ms BIGINT, 
	owed_gpu_ms BIGINT, 
	delivered_gpu_ms BIGINT NOT NULL, 
	hourly_met_gpu_ms BIGINT, 
	sampled_gpu_ms BIGINT NOT NULL, 
	used_gpu_ms BIGINT NOT NULL, 
	reason TEXT, 
	CONSTRAINT pk_layer_metrics_hour PRIMARY KEY (cluster, hour_at)
);
COMMENT ON COLUMN warehouse.layer_metrics_hour.reason IS 'why columns are null';

CREATE TABLE warehouse.owed_hour (
	cluster TEXT NOT NULL, 
	hour_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	account TEXT NOT NULL, 
	entitlement_gpu_ms BIGINT, 
	demand_gpu_ms BIGINT NOT NULL, 
	owed_gpu_ms BIGINT, 
	delivered_gpu_ms BIGINT NOT NULL, 
	CONSTRAINT pk_owed_hour PRIMARY KEY (cluster, hour_at, account)
);
COMMENT ON TABLE warehouse.owed_hour IS 'entitlement E, demand D, owed W = min(E, D), delivered L; E and W are null without inventory';

CREATE TABLE warehouse.usage_bucket (
	cluster TEXT NOT NULL, 
	bucket_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	account TEXT NOT NULL, 
	class TEXT NOT NULL, 
	gpu_ms BIGINT NOT NULL, 
	sampled_gpu_ms BIGINT NOT NULL, 
	used_gpu_ms BIGINT NOT NULL, 
	CONSTRAINT pk_usage_bucket PRIMARY KEY (cluster, bucket_at, account, class)
);
COMMENT ON TABLE warehouse.usage_bucket IS 'occupied GPU-time by account and class; sampled and used by the gpu_util rung';
COMMENT ON COLUMN warehouse.usage_bucket.bucket_at IS 'start of 15 minutes UTC';
COMMENT ON COLUMN warehouse.usage_bucket."class" IS 'allocated or unallocated';

CREATE TABLE warehouse.usage_hour (
	cluster TEXT NOT NULL, 
	hour_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	account TEXT NOT NULL, 
	class TEXT NOT NULL, 
	gpu_ms BIGINT NOT NULL, 
	sampled_gpu_ms BIGINT NOT NULL, 
	used_gpu_ms BIGINT NOT NULL, 
	CONSTRAINT pk_usage_hour PRIMARY KEY (cluster, hour_at, account, class)
);
COMMENT ON TABLE warehouse.usage_hour IS 'sums of four buckets';
COMMENT ON COLUMN warehouse.usage_hour.hour_at IS 'start of the hour, UTC';

CREATE TABLE warehouse.watermark (
	cluster TEXT NOT NULL, 
	ledger_seq BIGINT NOT NULL, 
	as_of_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	CONSTRAINT pk_watermark PRIMARY KEY (cluster)
);
COMMENT ON TABLE warehouse.watermark IS 'how far the newest roll-up of each cluster has seen';
COMMENT ON COLUMN warehouse.watermark.ledger_seq IS 'newest journal row when usage was last read';
COMMENT ON COLUMN warehouse.watermark.as_of_at IS 'open runs were counted up to here';

GRANT USAGE ON SCHEMA warehouse TO gpuledger_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA warehouse TO gpuledger_reader;
