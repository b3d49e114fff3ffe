"""Measures what resumes exactly: `python -m benchmarks.resuming` runs a program per row and writes the pages.

Each folder of programs has an environment, build/resuming/FOLDER, which is made when its requirements.txt has changed;
PyTorch takes 5 GB. A row whose program sees something else than rows.toml states fails, and nothing is
written. The answers with versions and date are answers.json. `--row NAME` runs a row alone and writes nothing;
`--smoke` runs those whose packages this interpreter has.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from benchmarks import measuring
from benchmarks.resuming import page

_ENVIRONMENTS = page.FOLDER.parents[1] / "build" / "resuming"
_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1"}
_SMOKE = ("keras_ema", "tf_data")


def main() -> int:
    """Run the programs; return 1 if one fails or sees something else than is stated."""
    parser = argparse.ArgumentParser("python -m benchmarks.resuming", description=__doc__)
    stated = page.rows()
    parser.add_argument(
        "--row", action="append", choices=list(stated), metavar="NAME", help="only this row, repeatable"
    )
    options = measuring.parse(parser, row=[name for name in _SMOKE if has_packages(stated[name])])
    clock, answers, has_failed = measuring.Clock(), {}, False
    for name in stated if options.row is None else options.row:
        answers[name] = run(stated[name], sys.executable if options.smoke else "")
        failures = page.differences(stated[name]["expected"], answers[name].get("cases", {}))
        has_failed |= bool(failures)
        print(f"{name}: {'; '.join(failures) or 'as stated'}", flush=True)
    print(clock.took())
    if options.row is None and not has_failed:
        recorded = {"date": str(datetime.datetime.now(datetime.UTC).date()), "rows": answers}
        page.ANSWERS.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
        for path, text in page.written(recorded).items():
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(page.FOLDER.parents[1])}")
    return int(has_failed)


def run(row: dict[str, Any], python: str = "") -> dict[str, Any]:
    """Run a program in its environment, or with this interpreter, and return what it printed, rounded.

    A program that fails sees nothing: its error is on stderr.
    """
    program, *words = row["program"].split()
    python = python or environment(row.get("environment", program.split("/")[0]))
    done = subprocess.run(
        [python, page.FOLDER / program, *words],
        env=os.environ | _THREADS | {"PYTHONPATH": "", "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        return {}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    answer["cases"] = {name: page.rounded(case) for name, case in answer["cases"].items()}
    return answer


def has_packages(row: dict[str, Any]) -> bool:
    """Return whether this interpreter has the packages of a row's environment in the same versions."""
    lines = (page.FOLDER / Path(row["program"]).parent / "requirements.txt").read_text().splitlines()
    asked = lines[0].removeprefix("# ").split()
    try:
        return all(each in (each.split("==")[0], pinned(each)) for each in asked)
    except importlib.metadata.PackageNotFoundError:
        return False


def pinned(requirement: str) -> str:
    """Return the requirement with the version that this interpreter has."""
    name = requirement.split("==")[0]
    return f"{name}=={importlib.metadata.version(name)}"


def environment(name: str) -> str:
    """Return the interpreter of an environment; make it if necessary. "main" is that of the pipeline itself."""
    if name == "main":
        return sys.executable
    folder, requirements = _ENVIRONMENTS / name, page.FOLDER / name / "requirements.txt"
    python, done = folder / "bin" / "python", folder / "requirements.txt"
    if not done.exists() or done.read_text() != requirements.read_text():
        print(f"installing {requirements.relative_to(page.FOLDER)} into {folder}", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        words = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--no-deps"]
        if uv := shutil.which("uv"):
            words = [uv, "pip", "install", "--python", str(python)]
        subprocess.run([*words, "--quiet", "-r", str(requirements)], check=True)
        shutil.copy(requirements, done)
    return str(python)


if __name__ == "__main__":
    sys.exit(main())
