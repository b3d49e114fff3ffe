"""A pipeline of independent trivial steps: localvertex compared with kfp.local.

Run it as `python -m benchmarks.local_run`. Both run the same component functions with the same Python, alternately and
without caches; the figures are medians of whole runs.
"""

import argparse
import contextlib
import io
import logging
import os
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from kfp import compiler, dsl, local

import localvertex
from benchmarks.measuring import Took, median, parse, took
from localvertex.processes.masks.mask import Mask
from localvertex.processes.processes import Processes
from localvertex.values.configuration import Configuration


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


def _starts(work_dir: Path, repeats: int) -> list[tuple[Took, Took]]:
    """Start a process that does nothing without and behind the mask of steps, alternately."""
    step = work_dir / "run" / "step"
    step.mkdir(parents=True)
    (work_dir / "run" / "run.json").touch()
    plain, masked = (Processes(grace_seconds=1, mask=mask) for mask in (None, Mask(work_dir=work_dir)))

    def start(processes: Processes) -> Took:
        return took(lambda: processes.run(["true"], cwd=step, env=dict(os.environ), log=step / "log.txt"))

    start(masked)  # finds out whether there can be a mask
    return [(start(plain), start(masked)) for _ in range(repeats)]


def main() -> None:
    """Print the medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    options = parse(parser, steps=2, repeats=1)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    pipeline = _make_pipeline(options.steps)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trivial.yaml"
        compiler.Compiler().compile(pipeline, str(file))
        local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=f"{folder}/kfp")
        how = localvertex.Options(work_dir=Path(folder) / "runs", use_cache=False)
        plain_how = replace(how, configuration=Configuration(sandbox="none"))
        turns: list[list[Took]] = []
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for _ in range(options.repeats):
                every = (how, plain_how)
                sides = [took(lambda each=each: localvertex.run(file, options=each)) for each in every]
                turns.append([*sides, took(pipeline)])
    ours, unmasked, theirs = (median(side) for side in zip(*turns, strict=True))
    print(f"{options.steps} independent steps, median of {options.repeats} runs")
    print(f"kfp.local    {theirs}   {1000 * theirs.seconds / options.steps:4.0f} ms per step")
    with tempfile.TemporaryDirectory() as folder:
        plain, masked = (median(side) for side in zip(*_starts(Path(folder), 10 * options.repeats), strict=True))
    more = f"{1000 * (masked.seconds - plain.seconds):.1f} ms more, {masked.seconds / plain.seconds:.2f} times as long"
    print(f"a process without the mask {plain}")
    print(f"a process behind the mask  {masked}   {more}")
    for name, each in (("localvertex", ours), ("without mask", unmasked)):
        ratio = f"{theirs.seconds / each.seconds:.2f} times as fast"
        ratio += f", {each.cpu_seconds / theirs.cpu_seconds:.2f} of its processor time"
        print(f"{name:12} {each}   {1000 * each.seconds / options.steps:4.0f} ms per step   {ratio}")


if __name__ == "__main__":
    main()
