"""The data of the view of a run, for `run.html` and for the console's routes; the console's scripts draw it."""
