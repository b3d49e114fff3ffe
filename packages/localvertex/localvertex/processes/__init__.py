"""Processes, their supervisors, environments and logs; nothing here knows about pipelines."""
