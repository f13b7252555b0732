-- Dagster keeps its runs in a database of its own: both it and gpuledger have a table alembic_version.
CREATE DATABASE dagster;
