"""Live updates: server-sent events from the records and files of runs."""
