"""The archive: usage and telemetry as Parquet, a file for each day and cluster, and the roll-up over it."""
