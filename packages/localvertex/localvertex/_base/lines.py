"""Lines for the user: the messages of a part while it works."""

from collections.abc import Callable

WriteLine = Callable[[str], None]
"""A function that takes one line for the user and prints it, or keeps it in a log."""
