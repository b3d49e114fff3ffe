"""Schedules, their cron expressions and their clock; the runs that they start are in `pipeline_jobs`."""
