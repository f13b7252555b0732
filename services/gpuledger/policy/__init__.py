"""Fair shares: order, issue, decisions; pure at the core."""
