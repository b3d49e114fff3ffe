"""The commands of `python -m localvertex`, on top of runs, their records and the server."""
