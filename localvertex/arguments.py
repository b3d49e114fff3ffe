"""Commands whose arguments depend on which inputs are there: Concat and IfPresent, written as JSON in a string."""

import json
from typing import Any

from localvertex.placeholders import Unresolvable


def present_inputs(executor_input: dict[str, Any]) -> set[str]:
    """Names of the inputs that have a value, for IfPresent."""
    inputs = executor_input.get("inputs", {})
    return {name for name, value in inputs.get("parameterValues", {}).items() if value is not None} | {
        name for name, value in inputs.get("artifacts", {}).items() if value.get("artifacts")
    }


def expand_arguments(arguments: tuple[str, ...], present: set[str]) -> list[str]:
    """A command with its Concat and IfPresent structures (JSON in a string) flattened to plain templates."""
    result: list[str] = []
    for argument in arguments:
        if argument.startswith(('{"Concat":', '{"IfPresent":')):
            result += expand(json.loads(argument), present)
        else:
            result.append(argument)
    return result


def expand(node: Any, present: set[str]) -> list[str]:
    """One node of a Concat or IfPresent structure as a list of templates."""
    if isinstance(node, str):
        return [node]
    if isinstance(node, list):
        return [text for item in node for text in expand(item, present)]
    if isinstance(node, dict) and "Concat" in node:
        return ["".join(expand(node["Concat"], present))]
    if isinstance(node, dict) and "IfPresent" in node:
        condition = node["IfPresent"]
        branch = condition.get("Then") if condition["InputName"] in present else condition.get("Else")
        return expand(branch, present) if branch is not None else []
    raise Unresolvable(f"{json.dumps(node)[:80]} is neither a Concat nor an IfPresent placeholder")
