"""Write the table of supported versions into docs/README.md: `python -m tests.versions`."""

import re
import statistics
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "README.md"
START, END = "<!-- versions: written by tests/versions.py -->\n\n", "\n<!-- end of versions -->\n"
PROJECTS = {"this pipeline": ".", "localvertex": "packages/localvertex", "exact_resume": "packages/exact_resume"}
NAMES = (
    *("kfp", "google-cloud-pipeline-components", "google-cloud-aiplatform", "google-cloud-storage"),
    *("tensorflow", "keras", "numpy", "apache-beam", "torch"),
)
LOCKS = ("cpu", "gpu", "beam", "torch")
DEVELOPMENT = ("dev", "test")
LINE = ["---"] * (len(PROJECTS) + 2)


def project(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
    return found


def supported(content: dict[str, Any], name: str) -> str:
    """Return the versions that a project declares for a package, including its extras."""
    groups, found = {"": content["dependencies"]} | content["optional-dependencies"], dict[str, str]()
    for extra in groups.keys() - DEVELOPMENT:
        for line in groups[extra]:
            if match := re.fullmatch(rf"{name}(?:\[[\w,-]+\])?([<>=].*?)(?:;.*)?", line):
                found[extra] = f"`{match[1].strip()}`"
    usual = statistics.mode(found.values()) if found else ""
    others = [f"`[{extra}]` {each}" for extra, each in sorted(found.items()) if each != usual]
    return ", ".join(filter(None, [usual, *others]))


def tested(name: str) -> str:
    """Return the version in the first lock file that has the package."""
    texts = ((ROOT / "requirements" / f"{lock}.txt").read_text() for lock in LOCKS)
    return next(found[1] for text in texts if (found := re.search(rf"^{name}==([\w.]+)", text, re.MULTILINE)))


def table() -> str:
    projects = [project(folder) for folder in PROJECTS.values()]
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["python_version"]
    rows = [["Python", *(f"`{each['requires-python']}`" for each in projects), python]]
    rows += [[name, *(supported(each, name) for each in projects), tested(name)] for name in NAMES]
    head = ["", *PROJECTS, "tested"]
    return "".join(f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in row)}|\n" for row in [head, LINE, *rows])


def page() -> str:
    """Return the page with the present table."""
    before, _, rest = PAGE.read_text().partition(START)
    return f"{before}{START}{table()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page())
