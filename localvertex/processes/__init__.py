"""Processes, their supervisors, environments and logs; nothing here knows a pipeline."""
