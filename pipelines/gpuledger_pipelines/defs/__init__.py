"""Assets and their checks, one folder per subject; listed one by one in ``definitions``."""
