"""A cluster that exists in memory only, under the production policy or another: what would come of it."""
