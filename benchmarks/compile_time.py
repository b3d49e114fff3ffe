"""The time of `python compile.py`, compared with the bare import of kfp's compiler.

    python -m benchmarks.compile_time [--pairs 9]

Prints the medians of both, which take turns, and the ratio of their processor times, which should be 1.5 or less.
"""

import argparse
import functools
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import median, parse, took

_BARE = [sys.executable, "-c", "import kfp.dsl, kfp.compiler"]
_LIMIT = 1.5


def main() -> int:
    """Time both in turns, so that other load on the machine affects both equally; return 1 above the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9)
    options = parse(parser, pairs=1)
    with tempfile.TemporaryDirectory() as directory:
        product = [sys.executable, str(Path(__file__).parents[1] / "compile.py"), "--output-dir", directory]
        run = functools.partial(subprocess.run, check=True, stdout=subprocess.DEVNULL)
        # The first of each reads its files from disk.
        pairs = [(took(run, _BARE), took(run, product)) for _ in range(options.pairs + 1)][1:]
    bare, compiled = (median(column) for column in zip(*pairs, strict=True))
    ratio = compiled.cpu_seconds / bare.cpu_seconds
    print(f"import kfp.dsl, kfp.compiler {bare}")
    print(f"python compile.py            {compiled}")
    print(f"ratio of processor times {ratio:.2f}, at most {_LIMIT} (medians of {options.pairs})")
    return int(ratio > _LIMIT and not options.smoke)


if __name__ == "__main__":
    sys.exit(main())
