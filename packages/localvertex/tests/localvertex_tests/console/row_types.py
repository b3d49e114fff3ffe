"""Writes the scripts' types of rows and records, `requirements/npm/made.d.ts`.

python -m localvertex_tests.console.row_types
"""

from pathlib import Path
from typing import Any, get_args

from localvertex.console.runs.row import FIELDS
from localvertex.show.view import shape

FILE = Path(__file__).parents[3] / "requirements" / "npm" / "made.d.ts"

_SHAPES = {
    "RunRecord": shape.RUN,
    "EntryRecord": shape.TASK,
    "Values": shape.VALUES,
    "Artifact": shape.ARTIFACT,
    "CustomJobStatus": shape.CUSTOM_JOB,
    "Goodput": shape.GOODPUT,
    "ReplicaStatus": shape.REPLICA,
    "Span": shape.SPAN,
    "Memory": shape.MEMORY,
    "JobEvent": shape.EVENT,
}

_TYPES = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    type(None): "null",
    dict: "Record<string, any>",
}


def text() -> str:
    """Return the content of the file."""
    fields = "".join(f"  {each.name}: {each.type};\n" for each in FIELDS)
    parts = [
        "// Made by `python -m localvertex_tests.console.row_types` from console/runs/row.py and show/view/shape.py.\n",
        f"/** A row of `GET /local/runs`. */\ninterface RunRow {{\n{fields}}}\n",
        *(f"interface {name} {{\n{_fields(fields)}}}\n" for name, fields in _SHAPES.items()),
    ]
    return "\n".join(parts)


def _fields(fields: dict[str, Any]) -> str:
    return "".join(f"  {_field(name, inner)};\n" for name, inner in fields.items())


def _field(name: str, inner: Any) -> str:
    null = " | null" if name.endswith("?") else ""
    return f"{name.rstrip('!?')}{'' if name.endswith('!') else '?'}: {_type(inner)}{null}"


def _type(inner: Any) -> str:
    if name := next((name for name, each in _SHAPES.items() if each is inner), ""):
        return name
    if isinstance(inner, list):
        return f"{_type(inner[0])}[]"
    if isinstance(inner, tuple):
        return f"[{', '.join(map(_type, inner))}]"
    if isinstance(inner, dict):
        if str in inner:
            return f"Record<string, {_type(inner[str])}>"
        return f"{{ {'; '.join(_field(*each) for each in inner.items())} }}"
    if isinstance(inner, frozenset):
        return "string"
    return " | ".join(dict.fromkeys(_TYPES[each] for each in get_args(inner) or (inner,)))


if __name__ == "__main__":
    FILE.write_text(text())
