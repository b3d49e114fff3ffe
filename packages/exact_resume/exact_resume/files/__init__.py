"""Files, locally and on gs://: written as a whole or not at all.

`shutil` (with its compression) and `tempfile` are imported by the functions that call them: they take 3 ms.
"""
