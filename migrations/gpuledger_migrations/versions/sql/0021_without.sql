DROP TABLE warehouse.statement;
DROP TABLE warehouse.close;
REVOKE USAGE ON SCHEMA warehouse FROM gpuledger_writer;
