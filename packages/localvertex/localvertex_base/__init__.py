"""Shared by `accelerators` and `localvertex`: reading user input, and the compiled file."""
