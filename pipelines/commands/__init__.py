"""One module per sub-command of `python -m pipelines`; what they do is in `jobs` and `schedules`."""
