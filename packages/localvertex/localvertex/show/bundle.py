"""The console's styles in one file, and so its scripts for a page opened from a disk: browsers load no modules there.

Each module becomes a function of its own, in the order of their imports. The scripts import and export only by the
statements below, at the beginning of a line.
"""

import posixpath
import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "console" / "page"

STYLES = (
    *("ui/style.css", "runs/run.css", "jobs/job.css", "comparing/compare.css", "vendor/uplot.css"),
    *("graph/graph.css", "models/models.css", "schedules/schedules.css", "creating/create.css"),
)
_LICENSES = "vendor/licenses.txt"

_COMMENT = re.compile(r"^[ \t]*(?:/\*\*(?:(?!\*/).)*\*/|//[^\n]*)\n", re.M | re.S)
"""A comment on lines of its own: one that gives the type of what follows it on its line stays."""

_FROM = re.compile(r'^(import|export)\s*(\*|\{[^}]*\}|\w+)\s*from\s*"([^"]+)";', re.M)
_NAMES = re.compile(r"\bexport\s*(\{[^}]*\});")
_DEFAULT = re.compile(r"\bexport default ")
_DECLARATION = re.compile(r"^export ((?:async )?(?:function|const|class) (\w+))", re.M)
_RENAMED = re.compile(r"([\w$]+) as ([\w$]+)")
_IMPORTED, _EXPORTED, _DECLARED = r"\1: \2", r"\2: \1", r"\1"


@cache
def style() -> str:
    """Return the styles of all views."""
    return "".join((FOLDER / name).read_text() for name in STYLES)


@cache
def script(entry: str = "report.js") -> str:
    """Return the script that shows the data of a report, and the licenses of the packages in it."""
    modules: dict[str, str] = {}
    _add(entry, modules)
    licenses = (FOLDER / _LICENSES).read_text()
    return "".join([f'"use strict";\n/*\n{licenses}*/\nconst modules = {{}};\n', *modules.values()])


def _add(name: str, modules: dict[str, str]) -> None:
    """Add a module as a function that fills its entry in `modules`, after those that it imports."""
    if name in modules:
        return
    folder, text = posixpath.dirname(name), (FOLDER / name).read_text()
    declared: list[str] = []
    if not name.startswith("vendor/"):
        text = _COMMENT.sub("", text)
        declared = [each for _, each in _DECLARATION.findall(text)]
        text = _DECLARATION.sub(_DECLARED, text)

    def linked(match: re.Match[str]) -> str:
        kind, names, target = match.groups()
        imported = posixpath.normpath(posixpath.join(folder, target))
        _add(imported, modules)
        module = f"modules[{imported!r}]"
        if names == "*":
            return f"Object.assign(exports, {module});"
        pattern = _RENAMED.sub(_IMPORTED, names) if names.startswith("{") else f"{{ default: {names} }}"
        if kind == "import":
            return f"const {pattern} = {module};"
        return f"{{ const {pattern} = {module}; Object.assign(exports, {names}); }}"

    text = _FROM.sub(linked, text)
    text = _NAMES.sub(lambda match: f"Object.assign(exports, {_RENAMED.sub(_EXPORTED, match[1])});", text)
    text = _DEFAULT.sub("exports.default = ", text)
    head = f"(() => {{ const exports = modules[{name!r}] = {{}};"
    modules[name] = f"{head}\n{text}\nObject.assign(exports, {{ {', '.join(declared)} }}); }})();\n"
