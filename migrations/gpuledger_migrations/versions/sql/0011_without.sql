DROP INDEX telemetry.ix_buckets_run;
