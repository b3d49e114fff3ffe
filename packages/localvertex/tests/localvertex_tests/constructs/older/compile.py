"""Compiles pipelines with earlier versions of kfp: `python -m localvertex_tests.constructs.older.compile ENVIRONMENTS`.

Each version gets a virtual environment in the folder ENVIRONMENTS, which should be outside the package; an existing
one is used again. The compiled files are checked in.
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE / "compiled"
FILES = sorted(FOLDER.glob("*.json"))
SOURCES = {
    "1.8.22": "kfp_1_8.py",
    "2.0.1": "kfp_2.py",
    "2.4.0": "kfp_2.py",
    "2.9.0": "kfp_2.py",
    "2.14.6": "kfp_2.py",
}
"""The version of kfp -> the source that it compiles."""


def compile_all(environments: Path) -> None:
    """Compile every source with its version of kfp."""
    for version, source in SOURCES.items():
        python = environment(environments / f"kfp-{version}", version)
        subprocess.run([python, "-W", "ignore", HERE / "sources" / source, FOLDER], check=True)
    for path in FOLDER.glob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()), indent=1, sort_keys=True) + "\n")


def environment(folder: Path, version: str) -> Path:
    """Return the Python of an environment with this version of kfp."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        # kfp 1.8 imports pkg_resources, which setuptools 81 no longer has.
        packages = [f"kfp=={version}", "setuptools<81"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    return python


if __name__ == "__main__":
    compile_all(Path(sys.argv[1]))
