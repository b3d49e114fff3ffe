"""Behaviour of an engine's workers in the tests: they succeed or fail."""

from localvertex._base.userinput.errors import UserError


def square(number: int) -> int:
    return number * number


def refuse(number: int) -> int:
    raise UserError(f"number {number} cannot be used; give another one")


def forbid(number: int) -> int:
    raise PermissionError(13, "Permission denied", f"gs://bucket/{number}")


def fail(number: int) -> int:
    return [0][number + 1]
