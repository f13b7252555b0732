"""Asking schedulers for what they know, again and again: their commands, and topics that they write themselves."""
