"""The error of a comparison that is impossible, whatever is tried again."""


class NotComparable(Exception):
    """The champion, or what a comparison needs, is missing or unusable; the message gives the reason."""
