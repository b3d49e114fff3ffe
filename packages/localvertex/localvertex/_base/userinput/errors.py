"""The one error for input that a user can correct."""


class UserError(ValueError):
    """The user's input is wrong; retrying cannot help.

    The message is one line: what was found, what was expected, what to do. Programs exit with code 2.

    Attributes:
        path: The place in the input that it is about, with which the message begins; empty for none.
        text: The rest of the message, for a reader who sees the place.
    """

    def __init__(self, text: str, *, path: str = "") -> None:
        super().__init__(f"{path}: {text}" if path else text)
        self.path, self.text = path, text
