"""Alembic migrations, shipped with the product."""
