"""Great Expectations suites, one per table; built when a check runs, for the import takes seconds."""
