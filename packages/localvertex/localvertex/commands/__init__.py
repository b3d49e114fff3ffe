"""The commands of `python -m localvertex`, and the server that two of them start: the API below the console."""
