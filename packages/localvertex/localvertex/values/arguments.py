"""Commands whose arguments depend on which inputs are set: Concat and IfPresent, written as JSON in a string."""

from collections.abc import Mapping, Sequence

from localvertex._base.compiled.payload import expand, mentioned_inputs
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.values.placeholders import Unresolvable

CommandPrefixes = Mapping[str, tuple[str, ...]]
"""Container image -> what its commands begin with, where its program is not installed locally."""


def present_inputs(executor_input: JsonObject) -> set[str]:
    """Return the names of the inputs that have a value, for IfPresent."""
    inputs = executor_input.get("inputs", {})
    return {name for name, value in inputs.get("parameterValues", {}).items() if value is not None} | {
        name for name, value in inputs.get("artifacts", {}).items() if value.get("artifacts")
    }


def expand_arguments(arguments: Sequence[str], present: set[str]) -> list[str]:
    """Flatten the Concat and IfPresent structures (JSON in a string) of a command to plain templates.

    Raises:
        Unresolvable: A structure is not one.
    """
    try:
        return expand(arguments, present)
    except UserError as error:
        raise Unresolvable(str(error)) from None


def check(arguments: Sequence[str]) -> list[str]:
    """Return the errors in the structures of a command, whichever inputs are set; an empty list when there are none."""
    reasons = []
    for argument in arguments:
        try:
            for present in (mentioned_inputs([argument]), set[str]()):
                expand([argument], present)
        except UserError as error:
            reasons.append(str(error))
    return reasons
