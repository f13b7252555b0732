"""The warehouse: tables that pipelines fill and the API reads."""
