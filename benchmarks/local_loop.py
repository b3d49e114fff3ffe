"""A loop of trivial iterations: localvertex at several sizes, and kfp.local at the first of them.

Run it as `python -m benchmarks.local_loop --iterations 100 1000 10000`. Time per iteration must not grow with their
number. kfp.local runs the same Python component with the same Python; it refuses container commands without Docker.
"""

import argparse
import contextlib
import io
import logging
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kfp import compiler, dsl, local

import localvertex
from benchmarks.measuring import Took, parse, took

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


def _quietly(run: Callable[[], Any]) -> Took:
    """Return the cost of a call whose output is discarded."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return took(run)


def _localvertex(component: Any, num_iterations: int) -> Took:
    """Return the cost of a whole run of localvertex."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "loop.yaml"
        compiler.Compiler().compile(_make_pipeline(component), str(file))
        # The container's command runs as it is, without a sandbox, which would be most of the time.
        prefixes = {_IMAGE: ("env",)} if component is nothing else {}
        how = localvertex.Options(work_dir=Path(folder) / "runs", use_cache=False, command_prefixes=prefixes)
        numbers = {"numbers": list(range(num_iterations))}
        return _quietly(lambda: localvertex.run(file, parameters=numbers, options=how))


def _kfp_local(num_iterations: int) -> Took:
    """Return the cost of a whole run of kfp.local."""
    with tempfile.TemporaryDirectory() as folder:
        local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=folder)
        return _quietly(lambda: _make_pipeline(double)(numbers=list(range(num_iterations))))


def _line(name: str, num_iterations: int, cost: Took) -> str:
    return f"{name:24} {num_iterations:6} iterations {cost} {1000 * cost.seconds / num_iterations:7.1f} ms each"


def main() -> None:
    """Print the seconds of all runs, the slope, and the ratio to kfp.local."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, nargs="+", default=[100, 1000], help="sizes of the loop, ascending")
    options = parse(parser, iterations=[2, 4])
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    sizes = options.iterations
    # The first run of a process imports what all of them need.
    _localvertex(double, 1)
    theirs = _kfp_local(sizes[0])
    print(_line("kfp.local, Python", sizes[0], theirs))
    for name, component in (("localvertex, Python", double), ("localvertex, container", nothing)):
        costs = {size: _localvertex(component, size) for size in sizes}
        for size in sizes:
            faster = theirs.seconds / costs[size].seconds
            ratio = f", {faster:.2f} times as fast" if (component, size) == (double, sizes[0]) else ""
            print(_line(name, size, costs[size]) + ratio)
        growth = costs[sizes[-1]].seconds / sizes[-1] / (costs[sizes[0]].seconds / sizes[0])
        print(f"{name}: an iteration of {sizes[-1]} takes {growth:.2f} times as long as one of {sizes[0]}")


if __name__ == "__main__":
    main()
