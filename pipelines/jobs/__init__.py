"""One submitted run: what is sent, its machines, and watching it; recurring runs are in `schedules`."""
