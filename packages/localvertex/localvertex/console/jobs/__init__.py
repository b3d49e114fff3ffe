"""Custom jobs in the console while they run: replicas, timeline, goodput, curves, and faults on request."""
