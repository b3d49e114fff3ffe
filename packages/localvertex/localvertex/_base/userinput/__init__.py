"""The lowest layer: command lines, strict reading, temporary folders, and errors; it knows no pipelines and no jobs."""
