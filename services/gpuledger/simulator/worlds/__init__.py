"""Ways to decide who gets GPUs, each behind the same protocol."""
