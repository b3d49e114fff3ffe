"""Engines: each applies a function to work items, on this machine or on others, and yields the small results."""
