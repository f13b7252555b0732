DROP TABLE ledger.day_sums;
