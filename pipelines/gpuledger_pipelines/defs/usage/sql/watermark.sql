-- How far this roll-up has seen; read in the same snapshot as the segments.
INSERT INTO warehouse.watermark (cluster, ledger_seq, as_of_at)
SELECT :cluster, coalesce((SELECT last_seq FROM ledger_read.books WHERE book = :cluster), 0), to_timestamp(:now_s)
ON CONFLICT (cluster) DO UPDATE SET ledger_seq = excluded.ledger_seq, as_of_at = excluded.as_of_at
