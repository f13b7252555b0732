CREATE TABLE warehouse.host_health_day (
    cluster TEXT NOT NULL,
    day DATE NOT NULL,
    host TEXT NOT NULL,
    state TEXT NOT NULL,
    installed_gpu_ms BIGINT NOT NULL,
    healthy_gpu_ms BIGINT NOT NULL,
    reserved_gpu_ms BIGINT NOT NULL,
    maintenance_gpu_ms BIGINT NOT NULL,
    unhealthy_gpu_ms BIGINT NOT NULL,
    occupied_gpu_ms BIGINT NOT NULL,
    failure_count BIGINT NOT NULL,
    CONSTRAINT pk_host_health_day PRIMARY KEY (cluster, day, host)
);
COMMENT ON TABLE warehouse.host_health_day IS 'in which condition the GPUs of each host were';
COMMENT ON COLUMN warehouse.host_health_day.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.host_health_day.day IS 'day of the organisation''s zone';
COMMENT ON COLUMN warehouse.host_health_day.host IS 'the machine, as the inventory names it';
COMMENT ON COLUMN warehouse.host_health_day.state IS 'how it stood at last that day: the worst of its parts';
COMMENT ON COLUMN warehouse.host_health_day.installed_gpu_ms IS 'gpu_ms: its GPUs; the conditions sum to it';
COMMENT ON COLUMN warehouse.host_health_day.healthy_gpu_ms IS 'gpu_ms: in order, held by runs or not';
COMMENT ON COLUMN warehouse.host_health_day.reserved_gpu_ms IS 'gpu_ms: in order and reserved, held by runs or not';
COMMENT ON COLUMN warehouse.host_health_day.maintenance_gpu_ms IS 'gpu_ms: in maintenance or draining, held by runs or not';
COMMENT ON COLUMN warehouse.host_health_day.unhealthy_gpu_ms IS 'gpu_ms: unhealthy, held by runs or not';
COMMENT ON COLUMN warehouse.host_health_day.occupied_gpu_ms IS 'gpu_ms: what runs that name the host held; in no sum of conditions';
COMMENT ON COLUMN warehouse.host_health_day.failure_count IS 'times that more of its GPUs were unhealthy than before';

GRANT SELECT ON warehouse.host_health_day TO gpuledger_reader;
