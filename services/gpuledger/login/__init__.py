"""What people meet where they already are: Slurm-like commands, a line at login, a portal's file, a job's mail.

It reads through the ledger API with the caller's own token, or from a file that a timer keeps, and never holds up a
login.
"""
