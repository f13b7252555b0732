"""Who asks, in which role, and how far they reach: tokens, roles, scopes."""
