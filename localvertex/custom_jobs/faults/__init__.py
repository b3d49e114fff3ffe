"""Faults that a user injects into a custom job, and when they are due."""
