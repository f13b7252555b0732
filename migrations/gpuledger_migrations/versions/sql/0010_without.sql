DROP VIEW ledger_read.watermarks;
DROP TABLE ledger.watermarks;
