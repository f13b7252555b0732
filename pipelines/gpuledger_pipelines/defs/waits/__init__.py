"""How long requests waited for their GPUs."""
