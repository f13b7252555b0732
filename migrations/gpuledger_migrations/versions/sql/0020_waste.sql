CREATE TABLE warehouse.waste_day (
    cluster TEXT NOT NULL,
    day DATE NOT NULL,
    account TEXT NOT NULL,
    user_token TEXT NOT NULL,
    allocated_gpu_ms BIGINT NOT NULL,
    sampled_gpu_ms BIGINT NOT NULL,
    used_gpu_ms BIGINT NOT NULL,
    idle_gpu_ms BIGINT NOT NULL,
    squatted_gpu_ms BIGINT NOT NULL,
    low_gpu_ms BIGINT NOT NULL,
    squatting_run_count BIGINT NOT NULL,
    CONSTRAINT pk_waste_day PRIMARY KEY (cluster, day, account, user_token)
);
COMMENT ON TABLE warehouse.waste_day IS 'charged time and what became of it, by account and person';
COMMENT ON COLUMN warehouse.waste_day.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.waste_day.day IS 'day of the organisation''s zone';
COMMENT ON COLUMN warehouse.waste_day.account IS 'path of the account that it counts under';
COMMENT ON COLUMN warehouse.waste_day.user_token IS 'the person, as the journal knows them';
COMMENT ON COLUMN warehouse.waste_day.allocated_gpu_ms IS 'gpu_ms: held by charged runs';
COMMENT ON COLUMN warehouse.waste_day.sampled_gpu_ms IS 'gpu_ms: what of it has a sample of utilisation; the rest is unknown';
COMMENT ON COLUMN warehouse.waste_day.used_gpu_ms IS 'gpu_ms: sampled time x gpu_util';
COMMENT ON COLUMN warehouse.waste_day.idle_gpu_ms IS 'gpu_ms: sampled time in which the run was used below 5 %';
COMMENT ON COLUMN warehouse.waste_day.squatted_gpu_ms IS 'gpu_ms: idle time of runs that were idle for more than 30 minutes at a stretch';
COMMENT ON COLUMN warehouse.waste_day.low_gpu_ms IS 'gpu_ms: sampled time in which the run was used from 5 % to below 15 %';
COMMENT ON COLUMN warehouse.waste_day.squatting_run_count IS 'runs that squatted';

-- By person, account and period, beside the account's budget: what a person cost it.
CREATE VIEW warehouse.waste_period AS
    SELECT waste.cluster, waste.period, waste.account, waste.user_token,
           waste.allocated_gpu_ms, waste.sampled_gpu_ms, waste.used_gpu_ms, waste.idle_gpu_ms, waste.squatted_gpu_ms,
           waste.low_gpu_ms, budget.budget_gpu_ms + budget.transferred_gpu_ms AS budget_gpu_ms,
           round(waste.squatted_gpu_ms * 1000000::numeric
                 / nullif(budget.budget_gpu_ms + budget.transferred_gpu_ms, 0))::bigint AS squatted_of_budget_ppm
    FROM (
        SELECT cluster, to_char(day, 'YYYY-MM') AS period, account, user_token,
               sum(allocated_gpu_ms)::bigint AS allocated_gpu_ms, sum(sampled_gpu_ms)::bigint AS sampled_gpu_ms,
               sum(used_gpu_ms)::bigint AS used_gpu_ms, sum(idle_gpu_ms)::bigint AS idle_gpu_ms,
               sum(squatted_gpu_ms)::bigint AS squatted_gpu_ms, sum(low_gpu_ms)::bigint AS low_gpu_ms
        FROM warehouse.waste_day GROUP BY 1, 2, 3, 4
    ) AS waste
    LEFT JOIN warehouse.budget_vs_actual AS budget USING (cluster, period, account);
COMMENT ON VIEW warehouse.waste_period IS 'waste by account, person and period, and the account''s budget beside it';
COMMENT ON COLUMN warehouse.waste_period.cluster IS 'the cluster, which is also the book';
COMMENT ON COLUMN warehouse.waste_period.period IS 'the organisation''s period, such as 2017-10';
COMMENT ON COLUMN warehouse.waste_period.account IS 'path of the account that it counts under';
COMMENT ON COLUMN warehouse.waste_period.user_token IS 'the person, as the journal knows them';
COMMENT ON COLUMN warehouse.waste_period.allocated_gpu_ms IS 'gpu_ms: held by charged runs';
COMMENT ON COLUMN warehouse.waste_period.sampled_gpu_ms IS 'gpu_ms: what of it has a sample of utilisation; the rest is unknown';
COMMENT ON COLUMN warehouse.waste_period.used_gpu_ms IS 'gpu_ms: sampled time x gpu_util';
COMMENT ON COLUMN warehouse.waste_period.idle_gpu_ms IS 'gpu_ms: sampled time in which the run was used below 5 %';
COMMENT ON COLUMN warehouse.waste_period.squatted_gpu_ms IS 'gpu_ms: idle time of runs that were idle for more than 30 minutes at a stretch';
COMMENT ON COLUMN warehouse.waste_period.low_gpu_ms IS 'gpu_ms: sampled time in which the run was used from 5 % to below 15 %';
COMMENT ON COLUMN warehouse.waste_period.budget_gpu_ms IS 'gpu_ms: the account''s budget with transfers, of all its people; null without a row of budget_vs_actual';
COMMENT ON COLUMN warehouse.waste_period.squatted_of_budget_ppm IS 'parts per million of that budget; null without one';

GRANT SELECT ON warehouse.waste_day, warehouse.waste_period TO gpuledger_reader;
