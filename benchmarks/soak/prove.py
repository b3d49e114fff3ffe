"""Proves by `localvertex prove` that trainings resume: `python -m benchmarks.soak.prove --seed 1`, or `make prove`.

Each part is a training: each example of exact_resume, and this project's pipeline with one replica and with two;
PyTorch's example needs `make venv-torch`. Every fault of the plan has to end as the undisturbed runs. `--part N` proves
one training alone, and a proof that was killed resumes with the part that it was at.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.soak.examples import EXAMPLES, TORCH
from benchmarks.soak.record import Fault, Soak, options
from localvertex.prove.faults import DEFAULT

_ROOT = Path(__file__).parents[2]
_SMALL = ("source=digits", "image_size=16", "max_examples=300", "epochs=4", "minimum_score=0")


def main() -> int:
    """Prove all; return 1 if one fault of a training ended otherwise."""
    # The other environment stays last, so that the numbers of the parts are the same with it and without.
    examples = [["--", sys.executable, str(each), "{checkpoints}"] for each in EXAMPLES if "torch" not in each.name]
    torch = [["--", str(TORCH), str(each), "{checkpoints}"] for each in EXAMPLES if "torch" in each.name]
    if not TORCH.exists():
        print(f"without the example of PyTorch: {TORCH} does not exist; run: make venv-torch", flush=True)
    jobs = [
        [
            "build/image_training.json",
            *(word for value in (*_SMALL, f"replica_count={count}") for word in ("-p", value)),
        ]
        for count in (1, 2)
    ]
    # Sums in another order would give other bits.
    os.environ.update(CUDA_VISIBLE_DEVICES="-1", OMP_NUM_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3", NO_GCE_CHECK="1")
    trainings = [*examples, *jobs, *(torch if TORCH.exists() else ())]
    number = len(trainings) * len(DEFAULT)
    given = options("prove", __doc__, num_faults=number, smoke_values={"num_faults": 1})
    soak = Soak("prove", given)
    subprocess.run([sys.executable, "compile.py"], cwd=_ROOT, check=True, stdout=subprocess.DEVNULL)

    def prove(number: int) -> Sequence[Fault]:
        folder, training = soak.folder / f"run-{number}", trainings[number % len(trainings)]
        folder.mkdir()
        flags = ["--seed", f"{given.seed + number // len(trainings)}", "--work-dir", str(folder / "runs")]
        words = [sys.executable, "-m", "localvertex", "prove", *flags, "--json", str(folder / "proof.json"), *training]
        done = subprocess.run(words, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            assert done.returncode == 0, done.stdout
            proofs = json.loads((folder / "proof.json").read_text())
        except Exception:
            soak.keep(folder, number)
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return [
            Fault(f"{each['fault']}, {proof['name']}", each["verdict"]) for proof in proofs for each in proof["faults"]
        ]

    return soak.run(prove)


if __name__ == "__main__":
    sys.exit(main())
