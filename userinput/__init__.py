"""The ground floor: command lines, strict reading of files, and their errors; pipelines and jobs are not known here."""
