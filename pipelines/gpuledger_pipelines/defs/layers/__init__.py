"""The four layers: the partition of installed GPU-time, by bucket, hour and day."""
