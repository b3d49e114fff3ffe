"""The two ways in which a call of this package is refused; failures of files and of machines are OSError."""


class InputError(ValueError):
    """The caller's input is wrong, such as a folder with another run; retrying cannot help.

    The message is one line: what was found, what was expected, what to do.
    """


class RunError(RuntimeError):
    """The input was fine and the run still cannot continue, for example because another job has taken it over."""
