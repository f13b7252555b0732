"""The archive in Dagster: days of clusters as partitions, and a nightly look at what is new or was touched."""
