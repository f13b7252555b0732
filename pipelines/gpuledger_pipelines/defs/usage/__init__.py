"""Who used how much: occupied GPU-time by account and class."""
