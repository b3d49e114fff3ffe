"""A pipeline of independent trivial steps: localvertex compared with kfp.local.

Run it as `python benchmarks/local_run.py`. Both run the same component functions with the same Python, alternately and
without caches; the figures are medians of the wall time of whole runs.
"""

import argparse
import contextlib
import io
import logging
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kfp import compiler, dsl, local

import localvertex


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def double(n: int) -> int:
    """Double a number, to have a step without work."""
    return 2 * n


def _make_pipeline(num_steps: int) -> Any:
    """Return a pipeline of independent steps."""

    @dsl.pipeline(name="trivial")
    def trivial() -> None:
        for n in range(num_steps):
            double(n=n)

    return trivial


def _seconds_of(run: Callable[[], object]) -> float:
    """Return the wall time of a call in seconds; its output is discarded."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        start = time.perf_counter()
        run()
        return time.perf_counter() - start


def main() -> None:
    """Print the medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    pipeline = _make_pipeline(options.steps)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trivial.yaml"
        compiler.Compiler().compile(pipeline, str(file))
        local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=f"{folder}/kfp")
        how = localvertex.Options(work_dir=Path(folder) / "runs", use_cache=False)
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(options.repeats):
            ours.append(_seconds_of(lambda: localvertex.run(file, options=how)))
            theirs.append(_seconds_of(pipeline))
    ours_median, theirs_median = statistics.median(ours), statistics.median(theirs)
    print(f"{options.steps} independent steps, median of {options.repeats} runs")
    per_step = [1000 * seconds / options.steps for seconds in (theirs_median, ours_median)]
    print(f"kfp.local    {theirs_median:6.2f} s   {per_step[0]:4.0f} ms per step")
    ratio = f"{theirs_median / ours_median:.2f} times as fast"
    print(f"localvertex  {ours_median:6.2f} s   {per_step[1]:4.0f} ms per step   {ratio}")


if __name__ == "__main__":
    main()
