"""Compares what interruptions cost with several ways to save a training: `python -m benchmarks.comparison --seed 1`.

Each tool is used as its documentation says, with the same faults: SIGKILL or SIGTERM in mid-epoch, and SIGKILL with
the newest checkpoint cut in half afterwards. Orbax needs an environment of its own, build/comparison/env, which is made
at the first start; Hugging Face's Trainer and Lightning are compared if there is one from `make venv-torch`. The table
is build/comparison/DATE.md. `--side lightning` compares these tools only.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from benchmarks import measuring
from benchmarks.comparison.faults import KINDS

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / "build" / "comparison"
_TORCH = _ROOT / ".venv-torch" / "bin" / "python"
_PACKAGES = ("jax==0.10.2", "orbax-checkpoint==0.12.8", "grain==0.2.18", "numpy==2.4.6", "scikit-learn==1.9.1")
_COLUMNS = ("steps_again", "too_often", "too_seldom")
_SIDES = ("keras", "jax", "hugging_face", "lightning")


def main() -> int:
    """Measure, print and write the table; return 1 if a run of exact_resume differs."""
    parser = argparse.ArgumentParser("python -m benchmarks.comparison", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--num-faults", type=int, default=5, help="of each kind and tool (default: %(default)s)")
    parser.add_argument("--side", action="append", choices=_SIDES, help="only these tools; may be repeated")
    options = measuring.parse(parser, num_faults=1, side=["keras"])
    clock = measuring.Clock()
    side = []
    for name in options.side or [each for each in _SIDES if each in ("keras", "jax") or _TORCH.exists()]:
        python = {"keras": lambda: sys.executable, "jax": _environment}.get(name, lambda: str(_TORCH))
        side += _side(f"{name}_side", python(), options)
    text = _table(side, options.num_faults, options.seed)
    print(text)
    print(clock.took())
    if not options.smoke:
        _FOLDER.mkdir(parents=True, exist_ok=True)
        (_FOLDER / f"{datetime.datetime.now(datetime.UTC).date()}.md").write_text(text)
    own = [line for line in side if line["tool"].startswith("exact_resume")]
    return int(not own or not all(line["is_equal"] and not line["too_often"] for line in own))


def _environment() -> str:
    """Return the interpreter with Orbax; install it if necessary."""
    python, done = _FOLDER / "env" / "bin" / "python", _FOLDER / "env" / "done"
    if not done.exists() or done.read_text() != str(_PACKAGES):
        venv.create(_FOLDER / "env", clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *_PACKAGES], check=True)
        done.write_text(str(_PACKAGES))
    return str(python)


def _side(name: str, python: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    words = [python, "-m", f"benchmarks.comparison.{name}", f"--seed={options.seed}"]
    words += [f"--num-faults={options.num_faults}", *(["--smoke"] if options.smoke else [])]
    # The other environment does not contain the package.
    environment = os.environ | {"PYTHONPATH": str(_ROOT / "packages" / "exact_resume")}
    done = subprocess.run(words, cwd=_ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _table(lines: list[dict[str, Any]], num_faults: int, seed: int) -> str:
    """Return means of each tool and kind of fault."""
    rows = []
    for tool in dict.fromkeys(line["tool"] for line in lines):
        cells = [tool]
        for kind in KINDS:
            found = [line for line in lines if (line["tool"], line["kind"]) == (tool, kind)]
            if not found:
                cells.append("")
            elif not any(line["has_started"] for line in found):
                cells.append("no start")
            else:
                means = [f"{sum(line[name] for line in found) / len(found):.0f}" for name in _COLUMNS]
                means.append(f"{sum(line['is_equal'] for line in found)}/{len(found)}")
                pairs = [line["losses"] for line in found if line["losses"]]
                means += [f"{max(abs(loss / whole - 1) for whole, loss in pairs):.1%}"] if pairs else []
                cells.append(", ".join(means))
        rows.append(f"| {' | '.join(cells)} |")
    about = f"{datetime.datetime.now(datetime.UTC).date()}, {measuring.machine()}, load {measuring.load()}, seed {seed}"
    explained = (
        "Means of steps done again, visits of examples too many and too few, how many runs ended with the weights of an"
        " undisturbed one, and by how much a final loss differed at most."
    )
    head = ["| saved with | killed | SIGTERM | newest torn |", "|---|---|---|---|"]
    return "\n".join([f"{about}, {num_faults} faults of each kind. {explained}", "", *head, *rows, ""])


if __name__ == "__main__":
    sys.exit(main())
