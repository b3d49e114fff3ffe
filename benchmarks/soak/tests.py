"""Runs the tests that take too long for `make test-slow`, which are marked `soak`: each is a part.

`python -m benchmarks.soak.tests`
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.soak.record import Fault, Soak, options

_ROOT = Path(__file__).parents[2]
_PYTEST = (sys.executable, "-m", "pytest", "-q", "-m", "soak")


def main() -> int:
    """Run the tests; return 1 if one of them failed."""
    done = subprocess.run([*_PYTEST, "--collect-only"], cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True)
    tests = [line for line in done.stdout.splitlines() if "::" in line]

    def run(number: int) -> Sequence[Fault]:
        words = [*_PYTEST, tests[number]]
        done = subprocess.run(words, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout
        return [Fault(tests[number].rpartition("::")[2], "passed")]

    given = options("tests", __doc__, num_faults=len(tests), smoke_values={"num_faults": 0})
    return Soak("tests", given).run(run)


if __name__ == "__main__":
    sys.exit(main())
