"""The lowest layer: command lines, strict reading of files, and their errors; it knows no pipelines and no jobs."""
