"""Schedules and the clock that fires them; the runs they start are in `pipeline_jobs`."""
