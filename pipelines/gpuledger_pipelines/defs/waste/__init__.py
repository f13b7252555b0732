"""What was charged and not used."""
