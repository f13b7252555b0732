-- The release before reads its own form only. They are kept for a day, and had by replay.
DELETE FROM ledger.cycle_decisions;
COMMENT ON COLUMN ledger.cycle_decisions.decisions IS '[place in the order, decision]: JSON, deflated';
