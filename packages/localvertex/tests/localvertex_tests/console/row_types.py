"""Writes the scripts' type of a row of the lists, `requirements/npm/row.d.ts`.

python -m localvertex_tests.console.row_types
"""

from pathlib import Path

from localvertex.console.runs.row import FIELDS

FILE = Path(__file__).parents[3] / "requirements" / "npm" / "row.d.ts"


def text() -> str:
    """Return the content of the file."""
    fields = "".join(f"  {each.name}: {each.type};\n" for each in FIELDS)
    head = "// Made by `python -m localvertex_tests.console.row_types` from localvertex/console/runs/row.py.\n"
    return f"{head}\n/** A row of `GET /local/runs`. */\ninterface RunRow {{\n{fields}}}\n"


if __name__ == "__main__":
    FILE.write_text(text())
