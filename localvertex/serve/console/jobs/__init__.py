"""Custom jobs in the console while they run: replicas, timeline, goodput, curves, and the faults that a user asks for."""
