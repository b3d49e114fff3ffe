"""The two kinds of failure that are told in one line: the user's input is wrong, or the run went wrong."""


class UserError(ValueError):
    """A mistake in the user's input: what was found, what was expected, what to do. Trying again cannot help."""


class TrainingError(RuntimeError):
    """The input was fine and the run still failed, such as a loss that is not finite."""
