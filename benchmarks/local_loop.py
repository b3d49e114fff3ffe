"""A loop of trivial iterations: localvertex at several sizes, and kfp.local at the first of them.

Run it as `python benchmarks/local_loop.py --iterations 100 1000 10000`. Time per iteration must not grow with their
number. kfp.local runs the same Python component with the same Python; it refuses container commands without Docker.
"""

import argparse
import contextlib
import io
import logging
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kfp import compiler, dsl, local

import localvertex

_IMAGE = "trivial"


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def double(n: int) -> int:
    """Double a number, to have a step without work."""
    return 2 * n


@dsl.container_component
def nothing(n: int) -> dsl.ContainerSpec:
    """Run a program that does nothing."""
    return dsl.ContainerSpec(image=_IMAGE, command=["true"], args=[n])


def _make_pipeline(component: Any) -> Any:
    """Return a pipeline with a loop over one component, whose items are a parameter."""

    @dsl.pipeline(name="loop")
    def loop(numbers: list[int]) -> None:
        with dsl.ParallelFor(numbers) as n:
            component(n=n)

    return loop


def _seconds_of(run: Callable[[], Any]) -> float:
    """Return the wall time of a call in seconds; its output is discarded."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        start = time.perf_counter()
        run()
        return time.perf_counter() - start


def _seconds_of_localvertex(component: Any, num_iterations: int) -> float:
    """Return the seconds of a whole run of localvertex."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "loop.yaml"
        compiler.Compiler().compile(_make_pipeline(component), str(file))
        # The container's command runs as it is, without a sandbox, which would be most of the time.
        prefixes = {_IMAGE: ("env",)} if component is nothing else {}
        how = localvertex.Options(work_dir=Path(folder) / "runs", use_cache=False, command_prefixes=prefixes)
        numbers = {"numbers": list(range(num_iterations))}
        return _seconds_of(lambda: localvertex.run(file, parameters=numbers, options=how))


def _seconds_of_kfp_local(num_iterations: int) -> float:
    """Return the seconds of a whole run of kfp.local."""
    with tempfile.TemporaryDirectory() as folder:
        local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=folder)
        return _seconds_of(lambda: _make_pipeline(double)(numbers=list(range(num_iterations))))


def _line(name: str, num_iterations: int, seconds: float) -> str:
    return f"{name:24} {num_iterations:6} iterations {seconds:8.2f} s {1000 * seconds / num_iterations:7.1f} ms each"


def main() -> None:
    """Print the seconds of all runs, the slope, and the ratio to kfp.local."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, nargs="+", default=[100, 1000], help="sizes of the loop, ascending")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    sizes = options.iterations
    # The first run of a process imports what all of them need.
    _seconds_of_localvertex(double, 1)
    theirs = _seconds_of_kfp_local(sizes[0])
    print(_line("kfp.local, Python", sizes[0], theirs))
    for name, component in (("localvertex, Python", double), ("localvertex, container", nothing)):
        seconds = {size: _seconds_of_localvertex(component, size) for size in sizes}
        for size in sizes:
            ratio = f", {theirs / seconds[size]:.2f} times as fast" if (component, size) == (double, sizes[0]) else ""
            print(_line(name, size, seconds[size]) + ratio)
        growth = seconds[sizes[-1]] / sizes[-1] / (seconds[sizes[0]] / sizes[0])
        print(f"{name}: an iteration of {sizes[-1]} takes {growth:.2f} times as long as one of {sizes[0]}")


if __name__ == "__main__":
    main()
