"""What accounts will have been delivered when a period ends."""
