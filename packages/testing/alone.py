"""Build packages and run the tests of each in an environment with its own dependencies alone.

    python packages/testing/alone.py localvertex exact_resume

The wheel is made from the source distribution, as an index would hand it out. The versions come from the lock file.
The environments are build/alone-NAME; a test that finds its package only because of this checkout fails here.
"""

import argparse
import re
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_EXTRAS = {"localvertex": "serve,test", "exact_resume": "gs,test"}
_LEFT_OUT = {
    "localvertex": [f"localvertex_tests/{folder}" for folder in ("console", "constructs", "prove", "show")],
    "exact_resume": ["test_blocks.py", "test_ends.py", "test_rehearsal.py", "wrapper"],
}
"""Whose tests take most of the time, and find nothing more here than `make test` does; --whole runs them."""
_BUILD = "import sys; from setuptools import build_meta; print(build_meta.{}(sys.argv[1]))"


def main(arguments: list[str] | None = None) -> int:
    """Build and test; return the exit code of the first tests that fail, or 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", choices=_EXTRAS, metavar="PACKAGE", help=f"one of {', '.join(_EXTRAS)}")
    parser.add_argument("--marker", default="not slow", help="which tests, as for pytest -m (default: %(default)r)")
    parser.add_argument("--whole", action="store_true", help="also run the tests for which `make test` suffices")
    options = parser.parse_args(arguments)
    for name in options.packages:
        python = _environment(name, _wheel(name))
        ignored = [f"--ignore=tests/{path}" for path in _LEFT_OUT[name] if not options.whole]
        pytest = [python.with_name("pytest"), "-m", options.marker, *ignored, "tests"]
        # As in the Makefile, tests that fail run once more, without the load of the others.
        for words in (["-n4", "--dist=worksteal"], ["--last-failed", "--last-failed-no-failures=none", "--exitfirst"]):
            done = subprocess.run([*pytest, *words], cwd=_ROOT / "packages" / name, check=False)
            if done.returncode != 1:
                break
        if done.returncode:
            return done.returncode
    return 0


def _wheel(name: str) -> Path:
    """Build the source distribution, and the wheel from what it contains; return the wheel."""
    dist = _ROOT / "build" / "dist"
    dist.mkdir(parents=True, exist_ok=True)
    archive = dist / _built("sdist", _ROOT / "packages" / name, dist)
    with tarfile.open(archive) as tar:
        tar.extractall(dist, filter="data")
    return dist / _built("wheel", dist / archive.name.removesuffix(".tar.gz"), dist)


def _built(kind: str, source: Path, dist: Path) -> str:
    words = [sys.executable, "-c", _BUILD.format(f"build_{kind}"), str(dist)]
    return subprocess.run(words, cwd=source, check=True, capture_output=True, text=True).stdout.splitlines()[-1]


def _environment(name: str, wheel: Path) -> Path:
    """Make an environment with the wheel, its extras and vertex_testing; return its interpreter."""
    folder = _ROOT / "build" / f"alone-{name}"
    venv.create(folder, clear=True, with_pip=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    lock = (_ROOT / "requirements" / "cpu.txt").read_text()
    versions = folder / "versions.txt"
    # Without the hashes, with which pip would want a pin for everything, the wheel included.
    versions.write_text("".join(f"{line}\n" for line in re.findall(r"^([a-zA-Z0-9._-]+==[^\s;]+)", lock, re.M)))
    subprocess.run([*pip, "-c", versions, f"{wheel}[{_EXTRAS[name]}]", _wheel("testing")], check=True)
    return python


if __name__ == "__main__":
    sys.exit(main())
