"""Training that resumes exactly: checkpoints, the lease on them, the event log, the machines around it, and files."""
