"""The one error for input that a user can correct."""


class UserError(ValueError):
    """The user's input is wrong; retrying cannot help.

    The message is one line: what was found, what was expected, what to do. Programs exit with code 2.
    """
