"""One submitted run: its request, its machines, watching it; recurring runs are in `schedules`."""
