-- What was delivered, and with it what is still to come.
INSERT INTO warehouse.forecast
    (cluster, period, account, delivered_gpu_ms, forecast_gpu_ms, low_gpu_ms, high_gpu_ms, history_day_count, left_day_count,
     as_of_at, reason)
SELECT cluster, period, account, delivered_gpu_ms, delivered_gpu_ms + middle, delivered_gpu_ms + low, delivered_gpu_ms + high,
       history, left_over, to_timestamp(:now_s), reason
FROM unnest(
    CAST(:of_periods AS text[]), CAST(:accounts AS text[]), CAST(:lows AS bigint[]), CAST(:middles AS bigint[]),
    CAST(:highs AS bigint[]), CAST(:histories AS bigint[]), CAST(:left_overs AS bigint[]), CAST(:reasons AS text[])
) AS made (period, account, low, middle, high, history, left_over, reason)
JOIN warehouse.budget_vs_actual USING (period, account)
WHERE cluster = :cluster
