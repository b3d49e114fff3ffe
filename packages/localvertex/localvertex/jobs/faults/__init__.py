"""Faults that a user injects into a custom job; the restarts that follow are in `restart_rules`."""
