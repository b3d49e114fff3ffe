"""Builds the environments of `packages_to_install` and imports from them: pip as localvertex has it, pip, and uv.

    python -m benchmarks.environments [--repeat 3] [--uv PATH]

They take turns; each has a cache of its own, empty for the first start. uv does not see the packages of the user's
environment, to which pip adds; the sizes show what that costs. Run it where only localvertex[run] is installed; needs
an index.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import Took, load, median, parse, took
from localvertex.processes.environments import create

_SETS = {
    "pandas": ("pandas",),
    "sklearn.ensemble": ("scikit-learn", "joblib"),
    "google.cloud.storage": ("google-cloud-storage",),
}
"""Packages by the module that a step imports."""


def main() -> int:
    """Print the medians of both tools for each set, and the size of the environment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--uv", default=shutil.which("uv"), help="program of uv; without one, only pip is measured")
    options = parse(parser, repeat=0)
    tools = ["localvertex", "pip", *([options.uv] if options.uv else [])]
    for module, packages in _SETS.items():
        starts = [(tool, start) for start in ("first", "second") for tool in tools]
        costs: dict[tuple[str, str], list[Took]] = {each: [] for each in starts}
        sizes = dict.fromkeys(tools, 0)
        for _ in range(options.repeat):
            with tempfile.TemporaryDirectory() as folder:
                for tool, start in costs:
                    target = Path(folder, f"{Path(tool).name}-{start}")
                    costs[tool, start].append(took(_start, tool, module, packages, target, f"{folder}/cache"))
                    sizes[tool] = sum(each.stat().st_size for each in target.rglob("*") if each.is_file())
        for (tool, start), found in costs.items():
            if found:
                name = f"{' '.join(packages)}: {Path(tool).name}, {start} start"
                print(f"{name:50} {median(found)}, {sizes[tool] / 1e6:.0f} MB; load {load()}", flush=True)
    return 0


def _start(tool: str, module: str, packages: tuple[str, ...], target: Path, cache: str) -> None:
    create(target)
    python, quiet = str(target / "bin" / "python3"), ["--quiet", *packages]
    words = [python, "-m", "pip", "install", *quiet]
    if tool not in ("localvertex", "pip"):
        words = [tool, "pip", "install", "--python", python, "--index-strategy", "unsafe-best-match", *quiet]
    env = os.environ | {"PIP_CACHE_DIR": f"{cache}-{Path(tool).name}", "UV_CACHE_DIR": f"{cache}-uv"}
    env |= {"PIP_COMPILE": "0"} if tool == "localvertex" else {}
    subprocess.run(words, env=env, check=True)
    subprocess.run([python, "-c", f"import {module}"], check=True)


if __name__ == "__main__":
    sys.exit(main())
