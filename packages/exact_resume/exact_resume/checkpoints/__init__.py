"""Checkpoints, lease, result and notes of a run; the caller decides when to save."""
