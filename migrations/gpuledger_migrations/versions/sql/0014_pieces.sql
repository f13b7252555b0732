COMMENT ON COLUMN ledger.cycle_decisions.decisions IS 'what lies there, as the policy reads it, deflated';
