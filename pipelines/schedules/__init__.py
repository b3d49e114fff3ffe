"""Recurring runs: the schedule file, the plan to reach it, and the calls; single runs are in `jobs`."""
