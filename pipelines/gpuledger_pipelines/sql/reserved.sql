-- Expects host and held; gives span, the GPUs that reservations keep empty, for the integral by :bucket_s.
span AS (
    SELECT '' AS account, 'reserved' AS kind, milli, from_s, to_s FROM host WHERE state = 'reserved'
    UNION ALL
    SELECT '', 'reserved', -milli, from_s, to_s FROM held WHERE state = 'reserved'
)
