"""Commands whose arguments depend on which inputs are set: Concat and IfPresent, written as JSON in a string."""

import json
import re
from typing import Any

from localvertex.values.placeholders import Unresolvable
from userinput.errors import UserError
from userinput.reading import parse_json


def present_inputs(executor_input: dict[str, Any]) -> set[str]:
    """Return the names of the inputs that have a value, for IfPresent."""
    inputs = executor_input.get("inputs", {})
    return {name for name, value in inputs.get("parameterValues", {}).items() if value is not None} | {
        name for name, value in inputs.get("artifacts", {}).items() if value.get("artifacts")
    }


def mentioned_inputs(arguments: tuple[str, ...]) -> set[str]:
    """Return the names of the inputs that a command's IfPresent structures test."""
    return {name for argument in arguments for name in re.findall(r'"InputName":\s*"([^"]*)"', argument)}


def expand_arguments(arguments: tuple[str, ...], present: set[str]) -> list[str]:
    """Flatten the Concat and IfPresent structures (JSON in a string) of a command to plain templates."""
    result: list[str] = []
    for argument in arguments:
        if argument.startswith(('{"Concat":', '{"IfPresent":')):
            result += expand(decoded(argument), present)
        else:
            result.append(argument)
    return result


def expand(node: Any, present: set[str]) -> list[str]:
    """Return one node of a Concat or IfPresent structure as a list of templates."""
    if isinstance(node, str):
        return [node]
    if isinstance(node, list):
        return [text for item in node for text in expand(item, present)]
    if isinstance(node, dict) and isinstance(node.get("Concat"), list):
        return ["".join(expand(node["Concat"], present))]
    if isinstance(node, dict) and isinstance(node.get("IfPresent"), dict) and "InputName" in node["IfPresent"]:
        condition = node["IfPresent"]
        branch = condition.get("Then") if condition["InputName"] in present else condition.get("Else")
        return expand(branch, present) if branch is not None else []
    raise Unresolvable(f"{json.dumps(node)[:80]} is neither a Concat nor an IfPresent placeholder")


def decoded(argument: str) -> Any:
    """Decode the structure of an argument."""
    try:
        return parse_json(argument, "the argument")
    except UserError as error:
        raise Unresolvable(str(error)) from None


def check(arguments: tuple[str, ...]) -> list[str]:
    """Return the errors in the structures of a command, whichever inputs are set; an empty list when there are none."""
    reasons = []
    for argument in arguments:
        try:
            for present in (mentioned_inputs((argument,)), set[str]()):
                expand_arguments((argument,), present)
        except Unresolvable as error:
            reasons.append(str(error))
    return reasons
