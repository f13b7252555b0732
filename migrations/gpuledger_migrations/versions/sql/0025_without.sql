DROP INDEX ledger.ix_segments_since, ledger.ix_waits_since;
DROP VIEW ledger_read.segment_versions, ledger_read.wait_versions, ledger_read.host_versions,
    ledger_read.share_versions, ledger_read.seals, ledger_read.asked, ledger_read.posted;
