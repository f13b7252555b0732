"""Enforcers: decisions of the policy turned into settings of a scheduler, shown, applied, and held against drift."""
