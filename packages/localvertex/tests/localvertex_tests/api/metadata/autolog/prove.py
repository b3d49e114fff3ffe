"""Proves that autolog works: `python -m localvertex_tests.api.metadata.autolog.prove FOLDER`.

autolog needs mlflow of an old range with its own dependencies, 800 MB, so it gets a virtual environment in FOLDER,
which should be outside the package; an existing one is used again.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from vertex_testing.server import Server

_HERE = Path(__file__).parent

_EXPECTED = ["run named COMPLETE 0.25 True", "run sklearn COMPLETE 0.5 True"]


def _environment(folder: Path) -> Path:
    """Return the Python of the environment."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = ["-m", "pip", "install", "--quiet", "--no-deps", "--requirement", _HERE / "requirements.txt"]
        subprocess.run([python, *install], check=True)
    return python


def _prove(folder: Path) -> None:
    """Run the client at a server, and compare what it prints."""
    python = _environment(folder)
    with tempfile.TemporaryDirectory() as work, Server(Path(work) / "runs") as server:
        path = server.work_dir / "api" / "token"
        token = path.read_text().strip() if path.exists() else "none"
        words = [python, "-W", "ignore", _HERE / "client.py", server.url, token]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = sorted(line for line in done.stdout.splitlines() if line.startswith("run "))
    if found != _EXPECTED:
        raise SystemExit(f"autolog does not work: expected {_EXPECTED}, found {found}\n{done.stderr[-2000:]}")
    print("\n".join(found))


if __name__ == "__main__":
    _prove(Path(sys.argv[1]))
