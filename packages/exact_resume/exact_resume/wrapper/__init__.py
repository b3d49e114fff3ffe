"""Wraps a command whose checkpoints are its own: commits and restores them, and passes signals and exit codes on."""
