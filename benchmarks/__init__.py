"""Benchmarks, each side by side with a named baseline."""
