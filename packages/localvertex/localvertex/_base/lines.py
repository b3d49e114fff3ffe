"""Lines for the user: what a part has to say while it works."""

from collections.abc import Callable

WriteLine = Callable[[str], None]
"""A function that takes one line for the user and prints it, or keeps it in a log."""
