"""The closed set of facts and their CloudEvents envelope."""
