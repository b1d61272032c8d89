"""Slow and obvious versions of what the library computes."""
