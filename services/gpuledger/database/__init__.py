"""PostgreSQL: embedded or yours."""
