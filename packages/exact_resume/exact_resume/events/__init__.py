"""The event log of a run, and whatever else observes a run."""
