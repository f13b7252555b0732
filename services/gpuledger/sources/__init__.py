"""Foreign records become events."""
