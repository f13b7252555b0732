-- The partition of law 9 by 15 minutes and hour under its own names; rows are computed anew by the next roll-up.
DROP TABLE warehouse.capacity_bucket;

CREATE TABLE warehouse.gpu_bucket (
    cluster TEXT NOT NULL,
    bucket_at TIMESTAMP WITH TIME ZONE NOT NULL,
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
    reason TEXT,
    CONSTRAINT pk_gpu_bucket PRIMARY KEY (cluster, bucket_at)
);
COMMENT ON TABLE warehouse.gpu_bucket IS 'what state every installed GPU was in; the states sum to installed';
COMMENT ON COLUMN warehouse.gpu_bucket.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.gpu_bucket.bucket_at IS 'start of 15 minutes, UTC';
COMMENT ON COLUMN warehouse.gpu_bucket.installed_gpu_ms IS 'gpu_ms: I, the GPUs of the inventory';
COMMENT ON COLUMN warehouse.gpu_bucket.unhealthy_gpu_ms IS 'gpu_ms: unhealthy and empty';
COMMENT ON COLUMN warehouse.gpu_bucket.maintenance_gpu_ms IS 'gpu_ms: in maintenance or draining, and empty';
COMMENT ON COLUMN warehouse.gpu_bucket.unhealthy_occupied_gpu_ms IS 'gpu_ms: unhealthy while a run held it; in no sum of states';
COMMENT ON COLUMN warehouse.gpu_bucket.allocated_gpu_ms IS 'gpu_ms: A, held by charged runs';
COMMENT ON COLUMN warehouse.gpu_bucket.unallocated_gpu_ms IS 'gpu_ms: N, held by runs that are free of charge';
COMMENT ON COLUMN warehouse.gpu_bucket.overhead_gpu_ms IS 'gpu_ms: O, in prolog, epilog or completing';
COMMENT ON COLUMN warehouse.gpu_bucket.reserved_gpu_ms IS 'gpu_ms: kept empty by a reservation';
COMMENT ON COLUMN warehouse.gpu_bucket.free_gpu_ms IS 'gpu_ms: installed, and in no other state';
COMMENT ON COLUMN warehouse.gpu_bucket.lost_gpu_ms IS 'gpu_ms: seen, then silent, with no run on it';
COMMENT ON COLUMN warehouse.gpu_bucket.unknown_gpu_ms IS 'gpu_ms: without evidence of a state';
COMMENT ON COLUMN warehouse.gpu_bucket.residual_gpu_ms IS 'gpu_ms: installed less all states: 0';
COMMENT ON COLUMN warehouse.gpu_bucket.reason IS 'why columns are null';

CREATE TABLE warehouse.gpu_hour (
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
    reason TEXT,
    CONSTRAINT pk_gpu_hour PRIMARY KEY (cluster, hour_at)
);
COMMENT ON TABLE warehouse.gpu_hour IS 'sums of four buckets; unknown where the inventory begins inside';
COMMENT ON COLUMN warehouse.gpu_hour.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.gpu_hour.hour_at IS 'start of the hour, UTC';
COMMENT ON COLUMN warehouse.gpu_hour.installed_gpu_ms IS 'gpu_ms: I, the GPUs of the inventory';
COMMENT ON COLUMN warehouse.gpu_hour.unhealthy_gpu_ms IS 'gpu_ms: unhealthy and empty';
COMMENT ON COLUMN warehouse.gpu_hour.maintenance_gpu_ms IS 'gpu_ms: in maintenance or draining, and empty';
COMMENT ON COLUMN warehouse.gpu_hour.unhealthy_occupied_gpu_ms IS 'gpu_ms: unhealthy while a run held it; in no sum of states';
COMMENT ON COLUMN warehouse.gpu_hour.allocated_gpu_ms IS 'gpu_ms: A, held by charged runs';
COMMENT ON COLUMN warehouse.gpu_hour.unallocated_gpu_ms IS 'gpu_ms: N, held by runs that are free of charge';
COMMENT ON COLUMN warehouse.gpu_hour.overhead_gpu_ms IS 'gpu_ms: O, in prolog, epilog or completing';
COMMENT ON COLUMN warehouse.gpu_hour.reserved_gpu_ms IS 'gpu_ms: kept empty by a reservation';
COMMENT ON COLUMN warehouse.gpu_hour.free_gpu_ms IS 'gpu_ms: installed, and in no other state';
COMMENT ON COLUMN warehouse.gpu_hour.lost_gpu_ms IS 'gpu_ms: seen, then silent, with no run on it';
COMMENT ON COLUMN warehouse.gpu_hour.unknown_gpu_ms IS 'gpu_ms: without evidence of a state';
COMMENT ON COLUMN warehouse.gpu_hour.residual_gpu_ms IS 'gpu_ms: installed less all states: 0';
COMMENT ON COLUMN warehouse.gpu_hour.reason IS 'why columns are null';

-- Two readings of owed_hour, which keeps both sides of owed in one row.
CREATE VIEW warehouse.demand_hour AS
    SELECT cluster, hour_at, account, demand_gpu_ms, delivered_gpu_ms AS running_gpu_ms,
           demand_gpu_ms - delivered_gpu_ms AS waiting_gpu_ms,
           CASE WHEN entitlement_gpu_ms IS NOT NULL
               THEN greatest(demand_gpu_ms - entitlement_gpu_ms, 0) END AS beyond_entitlement_gpu_ms
    FROM warehouse.owed_hour WHERE demand_gpu_ms > 0;
COMMENT ON VIEW warehouse.demand_hour IS 'funded work that ran or was eligible to run, by account and hour';
COMMENT ON COLUMN warehouse.demand_hour.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.demand_hour.hour_at IS 'start of the hour, UTC';
COMMENT ON COLUMN warehouse.demand_hour.account IS 'path of the account that it counts under';
COMMENT ON COLUMN warehouse.demand_hour.demand_gpu_ms IS 'gpu_ms: D, running and waiting';
COMMENT ON COLUMN warehouse.demand_hour.running_gpu_ms IS 'gpu_ms: held by allocated runs';
COMMENT ON COLUMN warehouse.demand_hour.waiting_gpu_ms IS 'gpu_ms: asked for by eligible requests that did not run';
COMMENT ON COLUMN warehouse.demand_hour.beyond_entitlement_gpu_ms IS 'gpu_ms: D - E where it is more: unmet beyond entitlement; null without inventory';
CREATE VIEW warehouse.entitlement_hour AS
    SELECT cluster, hour_at, account, entitlement_gpu_ms
    FROM warehouse.owed_hour WHERE entitlement_gpu_ms > 0;
COMMENT ON VIEW warehouse.entitlement_hour IS 'what each leaf account was entitled to, by hour; no rows without inventory';
COMMENT ON COLUMN warehouse.entitlement_hour.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.entitlement_hour.hour_at IS 'start of the hour, UTC';
COMMENT ON COLUMN warehouse.entitlement_hour.account IS 'path of the account that it counts under';
COMMENT ON COLUMN warehouse.entitlement_hour.entitlement_gpu_ms IS 'gpu_ms: E, share in force x healthy capacity; over the leaves they sum to it';

GRANT SELECT ON warehouse.gpu_bucket, warehouse.gpu_hour, warehouse.demand_hour, warehouse.entitlement_hour
    TO gpuledger_reader;

-- What every column is, and its unit, in the database too.
COMMENT ON TABLE warehouse.usage_bucket IS 'occupied GPU-time by account and class; sampled and used by the gpu_util rung';
COMMENT ON COLUMN warehouse.usage_bucket.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.usage_bucket.bucket_at IS 'start of 15 minutes, UTC';
COMMENT ON COLUMN warehouse.usage_bucket.account IS 'path of the account that it counts under';
COMMENT ON COLUMN warehouse.usage_bucket."class" IS 'allocated or unallocated';
COMMENT ON COLUMN warehouse.usage_bucket.gpu_ms IS 'gpu_ms: what runs held';
COMMENT ON COLUMN warehouse.usage_bucket.sampled_gpu_ms IS 'gpu_ms: what of it has a sample of utilisation';
COMMENT ON COLUMN warehouse.usage_bucket.used_gpu_ms IS 'gpu_ms: sampled time x gpu_util';

COMMENT ON TABLE warehouse.usage_hour IS 'sums of four buckets';
COMMENT ON COLUMN warehouse.usage_hour.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.usage_hour.hour_at IS 'start of the hour, UTC';
COMMENT ON COLUMN warehouse.usage_hour.account IS 'path of the account that it counts under';
COMMENT ON COLUMN warehouse.usage_hour."class" IS 'allocated or unallocated';
COMMENT ON COLUMN warehouse.usage_hour.gpu_ms IS 'gpu_ms: what runs held';
COMMENT ON COLUMN warehouse.usage_hour.sampled_gpu_ms IS 'gpu_ms: what of it has a sample of utilisation';
COMMENT ON COLUMN warehouse.usage_hour.used_gpu_ms IS 'gpu_ms: sampled time x gpu_util';

COMMENT ON TABLE warehouse.owed_hour IS 'entitlement E, demand D, owed W = min(E, D), delivered L; E and W are null without inventory';
COMMENT ON COLUMN warehouse.owed_hour.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.owed_hour.hour_at IS 'start of the hour, UTC';
COMMENT ON COLUMN warehouse.owed_hour.account IS 'path of the account that it counts under';
COMMENT ON COLUMN warehouse.owed_hour.entitlement_gpu_ms IS 'gpu_ms: E = share in force x healthy capacity; null without inventory';
COMMENT ON COLUMN warehouse.owed_hour.demand_gpu_ms IS 'gpu_ms: D, funded work that ran or was eligible to run';
COMMENT ON COLUMN warehouse.owed_hour.owed_gpu_ms IS 'gpu_ms: W = min(E, D); null without inventory';
COMMENT ON COLUMN warehouse.owed_hour.delivered_gpu_ms IS 'gpu_ms: L, allocated time before credits';

COMMENT ON TABLE warehouse.watermark IS 'how far the newest roll-up of each cluster has seen';
COMMENT ON COLUMN warehouse.watermark.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.watermark.ledger_seq IS 'newest journal row when usage was last read';
COMMENT ON COLUMN warehouse.watermark.as_of_at IS 'open runs were counted up to here';

COMMENT ON TABLE warehouse.layer_metrics_hour IS 'the sums that the four layers are ratios of';
COMMENT ON COLUMN warehouse.layer_metrics_hour.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.layer_metrics_hour.hour_at IS 'start of the hour, UTC';
COMMENT ON COLUMN warehouse.layer_metrics_hour.installed_gpu_ms IS 'gpu_ms: I, the GPUs of the inventory';
COMMENT ON COLUMN warehouse.layer_metrics_hour.unhealthy_gpu_ms IS 'gpu_ms: unhealthy and empty';
COMMENT ON COLUMN warehouse.layer_metrics_hour.maintenance_gpu_ms IS 'gpu_ms: in maintenance or draining, and empty';
COMMENT ON COLUMN warehouse.layer_metrics_hour.unhealthy_occupied_gpu_ms IS 'gpu_ms: unhealthy while a run held it; in no sum of states';
COMMENT ON COLUMN warehouse.layer_metrics_hour.allocated_gpu_ms IS 'gpu_ms: A, held by charged runs';
COMMENT ON COLUMN warehouse.layer_metrics_hour.unallocated_gpu_ms IS 'gpu_ms: N, held by runs that are free of charge';
COMMENT ON COLUMN warehouse.layer_metrics_hour.overhead_gpu_ms IS 'gpu_ms: O, in prolog, epilog or completing';
COMMENT ON COLUMN warehouse.layer_metrics_hour.reserved_gpu_ms IS 'gpu_ms: kept empty by a reservation';
COMMENT ON COLUMN warehouse.layer_metrics_hour.free_gpu_ms IS 'gpu_ms: installed, and in no other state';
COMMENT ON COLUMN warehouse.layer_metrics_hour.lost_gpu_ms IS 'gpu_ms: seen, then silent, with no run on it';
COMMENT ON COLUMN warehouse.layer_metrics_hour.unknown_gpu_ms IS 'gpu_ms: without evidence of a state';
COMMENT ON COLUMN warehouse.layer_metrics_hour.residual_gpu_ms IS 'gpu_ms: installed less all states: 0';
COMMENT ON COLUMN warehouse.layer_metrics_hour.owed_gpu_ms IS 'gpu_ms: W, summed over accounts and hours';
COMMENT ON COLUMN warehouse.layer_metrics_hour.delivered_gpu_ms IS 'gpu_ms: L, summed over accounts and hours';
COMMENT ON COLUMN warehouse.layer_metrics_hour.hourly_met_gpu_ms IS 'gpu_ms: min(L, W) by account and hour, summed';
COMMENT ON COLUMN warehouse.layer_metrics_hour.sampled_gpu_ms IS 'gpu_ms: what runs held that has a sample of utilisation';
COMMENT ON COLUMN warehouse.layer_metrics_hour.used_gpu_ms IS 'gpu_ms: sampled time x gpu_util';
COMMENT ON COLUMN warehouse.layer_metrics_hour.reason IS 'why columns are null';

COMMENT ON TABLE warehouse.layer_metrics_day IS 'the same by day; owed, delivered and met are those of the hours that begin in it';
COMMENT ON COLUMN warehouse.layer_metrics_day.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.layer_metrics_day.day IS 'day of the organisation''s zone';
COMMENT ON COLUMN warehouse.layer_metrics_day.installed_gpu_ms IS 'gpu_ms: I, the GPUs of the inventory';
COMMENT ON COLUMN warehouse.layer_metrics_day.unhealthy_gpu_ms IS 'gpu_ms: unhealthy and empty';
COMMENT ON COLUMN warehouse.layer_metrics_day.maintenance_gpu_ms IS 'gpu_ms: in maintenance or draining, and empty';
COMMENT ON COLUMN warehouse.layer_metrics_day.unhealthy_occupied_gpu_ms IS 'gpu_ms: unhealthy while a run held it; in no sum of states';
COMMENT ON COLUMN warehouse.layer_metrics_day.allocated_gpu_ms IS 'gpu_ms: A, held by charged runs';
COMMENT ON COLUMN warehouse.layer_metrics_day.unallocated_gpu_ms IS 'gpu_ms: N, held by runs that are free of charge';
COMMENT ON COLUMN warehouse.layer_metrics_day.overhead_gpu_ms IS 'gpu_ms: O, in prolog, epilog or completing';
COMMENT ON COLUMN warehouse.layer_metrics_day.reserved_gpu_ms IS 'gpu_ms: kept empty by a reservation';
COMMENT ON COLUMN warehouse.layer_metrics_day.free_gpu_ms IS 'gpu_ms: installed, and in no other state';
COMMENT ON COLUMN warehouse.layer_metrics_day.lost_gpu_ms IS 'gpu_ms: seen, then silent, with no run on it';
COMMENT ON COLUMN warehouse.layer_metrics_day.unknown_gpu_ms IS 'gpu_ms: without evidence of a state';
COMMENT ON COLUMN warehouse.layer_metrics_day.residual_gpu_ms IS 'gpu_ms: installed less all states: 0';
COMMENT ON COLUMN warehouse.layer_metrics_day.owed_gpu_ms IS 'gpu_ms: W, summed over accounts and hours';
COMMENT ON COLUMN warehouse.layer_metrics_day.delivered_gpu_ms IS 'gpu_ms: L, summed over accounts and hours';
COMMENT ON COLUMN warehouse.layer_metrics_day.hourly_met_gpu_ms IS 'gpu_ms: min(L, W) by account and hour, summed';
COMMENT ON COLUMN warehouse.layer_metrics_day.sampled_gpu_ms IS 'gpu_ms: what runs held that has a sample of utilisation';
COMMENT ON COLUMN warehouse.layer_metrics_day.used_gpu_ms IS 'gpu_ms: sampled time x gpu_util';
COMMENT ON COLUMN warehouse.layer_metrics_day.reason IS 'why columns are null';

COMMENT ON TABLE warehouse.budget_vs_actual IS 'budget, what the account was owed and got, and why they differ; the causes sum to budget - delivered';
COMMENT ON COLUMN warehouse.budget_vs_actual.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.budget_vs_actual.period IS 'the organisation''s period, such as 2017-10';
COMMENT ON COLUMN warehouse.budget_vs_actual.account IS 'path of the account that it counts under';
COMMENT ON COLUMN warehouse.budget_vs_actual.budget_gpu_ms IS 'gpu_ms: granted and rolled over into the period, weighted';
COMMENT ON COLUMN warehouse.budget_vs_actual.transferred_gpu_ms IS 'gpu_ms: received less given away, weighted';
COMMENT ON COLUMN warehouse.budget_vs_actual.charged_gpu_ms IS 'gpu_ms: charges that the ledger has posted, weighted';
COMMENT ON COLUMN warehouse.budget_vs_actual.held_gpu_ms IS 'gpu_ms: set aside by admissions, weighted';
COMMENT ON COLUMN warehouse.budget_vs_actual.credited_gpu_ms IS 'gpu_ms: given back for hardware failures, weighted';
COMMENT ON COLUMN warehouse.budget_vs_actual.expired_gpu_ms IS 'gpu_ms: gone at the end of lots, weighted';
COMMENT ON COLUMN warehouse.budget_vs_actual.available_gpu_ms IS 'gpu_ms: budget + transferred + credited - expired - charged - held';
COMMENT ON COLUMN warehouse.budget_vs_actual.unallocated_gpu_ms IS 'gpu_ms: time free of charge, weighted';
COMMENT ON COLUMN warehouse.budget_vs_actual.entitlement_gpu_ms IS 'gpu_ms: sum of E over the period''s hours; null without inventory';
COMMENT ON COLUMN warehouse.budget_vs_actual.demand_gpu_ms IS 'gpu_ms: sum of D';
COMMENT ON COLUMN warehouse.budget_vs_actual.owed_gpu_ms IS 'gpu_ms: sum of W; null without inventory';
COMMENT ON COLUMN warehouse.budget_vs_actual.delivered_gpu_ms IS 'gpu_ms: L, allocated time of the period''s buckets net of credits';
COMMENT ON COLUMN warehouse.budget_vs_actual.variance_transfer_gpu_ms IS 'gpu_ms: transfers out less in';
COMMENT ON COLUMN warehouse.budget_vs_actual.variance_expiry_gpu_ms IS 'gpu_ms: what expired';
COMMENT ON COLUMN warehouse.budget_vs_actual.variance_capacity_gpu_ms IS 'gpu_ms: budget after both, less E';
COMMENT ON COLUMN warehouse.budget_vs_actual.variance_demand_gpu_ms IS 'gpu_ms: E less W';
COMMENT ON COLUMN warehouse.budget_vs_actual.variance_scheduler_gpu_ms IS 'gpu_ms: W less L before credits';
COMMENT ON COLUMN warehouse.budget_vs_actual.variance_credit_gpu_ms IS 'gpu_ms: L before credits less L';
