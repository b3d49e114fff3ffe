"""Copy what the console's page uses of the locked npm packages: `python requirements/npm/vendor.py`, with Node.

To update a package: change its version in package.json, run `npm install` in this folder, then this script.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
FOLDER = HERE.parents[1] / "localvertex" / "console" / "page" / "vendor"
AXE = HERE.parents[1] / "tests" / "data" / "axe.min.js"

FILES = {
    "htm": {"dist/htm.mjs": "htm.js"},
    "preact": {"dist/preact.mjs": "preact.js", "hooks/dist/hooks.mjs": "hooks.js"},
    "uplot": {"dist/uPlot.esm.js": "uplot.js", "dist/uPlot.min.css": "uplot.css"},
}
"""For each package its files, and what they are called here."""

TYPES = {
    "htm": {"htm.d.ts": 'export { default } from "htm";\n'},
    "preact": {"preact.d.ts": 'export * from "preact";\n', "hooks.d.ts": 'export * from "preact/hooks";\n'},
    "uplot": {"uplot.d.ts": 'export { default } from "uplot";\n'},
}
"""Declares the types of the files to TypeScript; no page loads these."""

IMPORTS = {'from"preact"': 'from"./preact.js"'}
"""Names of packages, which no browser knows, and the addresses of the files."""


def main() -> None:
    """Replace all files of the folder, and axe-core among the tests' data."""
    npm = shutil.which("npm")
    if not npm:
        sys.exit("error: npm was not found; install Node")
    subprocess.run([npm, "ci", "--silent"], cwd=HERE, check=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    packages = {name: copied(name) for name in FILES}
    (FOLDER / "vendor.json").write_text(json.dumps(packages, indent=2) + "\n")
    texts = [f"{name} {each['version']}\n\n{license_of(name)}\n" for name, each in packages.items()]
    (FOLDER / "licenses.txt").write_text(f"\n{'-' * 80}\n\n".join(texts))
    shutil.copy(MODULES / "axe-core" / "axe.min.js", AXE)
    for name, each in packages.items():
        print(f"{name} {each['version']} ({each['license']}): {', '.join(each['files'])}")


def copied(package: str) -> dict[str, Any]:
    """Copy the files of a package; return its version, license and files with their hashes."""
    about = json.loads((MODULES / package / "package.json").read_text())
    for source, name in FILES[package].items():
        (FOLDER / name).write_text(adapted((MODULES / package / source).read_text()))
    for name, text in TYPES[package].items():
        (FOLDER / name).write_text(text)
    names = sorted([*FILES[package].values(), *TYPES[package]])
    hashes = {name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in names}
    return {"version": about["version"], "license": about["license"], "files": hashes}


def adapted(text: str) -> str:
    """Return a file without the address of its source map, and with imports that a browser can load."""
    for old, new in IMPORTS.items():
        text = text.replace(old, new)
    return re.sub(r"\n?//# sourceMappingURL=\S+\s*$", "", text).rstrip("\n") + "\n"


def license_of(package: str) -> str:
    """Return the text of a license."""
    return (MODULES / package / "LICENSE").read_text().strip()


if __name__ == "__main__":
    main()
