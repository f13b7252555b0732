DROP TRIGGER keep_day_sums ON ledger.books;
DROP TRIGGER note_day_sums ON ledger.day_sums;
DROP FUNCTION ledger.keep_day_sums();
DROP FUNCTION ledger.note_day_sums();
