"""Recurring runs: the schedule file, the plan to match it, and the calls; single runs are in `jobs`."""
