"""A backup that says what it holds, and a restore that proves that it came back."""
