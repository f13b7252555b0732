"""How each host fared."""
