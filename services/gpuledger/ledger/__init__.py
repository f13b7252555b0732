"""The append-only book: journal, segments, postings, balances."""
