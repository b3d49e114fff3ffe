"""The error of a comparison that is impossible."""


class NotComparable(Exception):
    """The champion, or what a comparison needs, is missing or unusable; the message gives the reason.

    Args:
        reason: The message.
        is_final: Whether the same two models cannot be compared later, either: no file is missing that may come back.
        has_other_classes: Whether the dataset lacks classes of the champion, so that both models may be kept.
    """

    def __init__(self, reason: str, *, is_final: bool = False, has_other_classes: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final
        self.has_other_classes = has_other_classes
