"""Runs the proofs one after the other, see their modules: `python -m benchmarks.soak [--seed N]`.

A killed soak that is started again with the same seed skips the finished parts. The results of all proofs are in
build/soak/DATE.md.
"""

import argparse
import subprocess
import sys

from benchmarks.soak.examples import TORCH

_PROOFS = ("prepare", "training", "journeys", "recipes", "examples", "prove", "release", "tests")


def main() -> int:
    """Pass the arguments on to each proof; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--output-dir", help="folder for the record and the table")
    parser.add_argument("--smoke", action="store_true", help="only try the proofs, with few faults")
    parser.parse_args()
    commands = [[sys.executable, "-m", f"benchmarks.soak.{proof}", *sys.argv[1:]] for proof in _PROOFS]
    if TORCH.exists():
        commands.append([str(TORCH), "-m", "benchmarks.soak.examples", *sys.argv[1:]])
        commands.append([sys.executable, "-m", "benchmarks.soak.versions", *sys.argv[1:]])
    return int(any([subprocess.run(command).returncode for command in commands]))


if __name__ == "__main__":
    sys.exit(main())
