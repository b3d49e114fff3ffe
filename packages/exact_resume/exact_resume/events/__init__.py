"""The event log and other observers of a run."""
