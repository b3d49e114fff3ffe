"""The runs of the work directory: the record, logs and artifacts of one, and what is done to it."""
