"""What `python compile.py` costs beside the bare import of kfp's compiler, side by side in one run.

`python benchmarks/compile_time.py [PAIRS]` prints the median seconds of both and their ratio: at most 1.5 is wanted.
"""

import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
BARE = [sys.executable, "-c", "import kfp.dsl, kfp.compiler"]


def seconds(command: list[str]) -> float:
    """Return the wall time of a process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main(num_pairs: int) -> None:
    """Time both in turns, so that what else the machine does meets both alike."""
    with tempfile.TemporaryDirectory() as directory:
        ours = [sys.executable, str(REPOSITORY / "compile.py"), "--output-dir", directory]
        seconds(BARE), seconds(ours)  # the first of each reads its files from disk
        pairs = [(seconds(BARE), seconds(ours)) for _ in range(num_pairs)]
    bare, compiled = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(b / a for a, b in pairs)
    print(f"import kfp.dsl, kfp.compiler  {bare:.2f} s")
    print(f"python compile.py             {compiled:.2f} s")
    print(f"ratio                         {ratio:.2f} (median of {num_pairs} pairs)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
