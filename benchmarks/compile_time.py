"""The time of `python compile.py`, compared with the bare import of kfp's compiler.

`python benchmarks/compile_time.py [PAIRS]` prints the median seconds of both and their ratio, which should be 1.5 or
less.
"""

import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

_REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
_BARE = [sys.executable, "-c", "import kfp.dsl, kfp.compiler"]


def _seconds(command: list[str]) -> float:
    """Return the wall time of a process, in seconds."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main(num_pairs: int) -> None:
    """Time both in turns, so that other load on the machine affects both equally."""
    with tempfile.TemporaryDirectory() as directory:
        product = [sys.executable, str(_REPOSITORY / "compile.py"), "--output-dir", directory]
        _seconds(_BARE), _seconds(product)  # the first of each reads its files from disk
        pairs = [(_seconds(_BARE), _seconds(product)) for _ in range(num_pairs)]
    bare, compiled = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(b / a for a, b in pairs)
    print(f"import kfp.dsl, kfp.compiler  {bare:.2f} s")
    print(f"python compile.py             {compiled:.2f} s")
    print(f"ratio                         {ratio:.2f} (median of {num_pairs} pairs)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
