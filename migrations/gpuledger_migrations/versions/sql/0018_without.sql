DROP VIEW ledger_read.submissions;
DROP TABLE warehouse.queue_wait_day;
DROP AGGREGATE warehouse.product (numeric);
