"""The versions that the steps of a pipeline pin: replaced or refused where this Python has none of them."""

from collections.abc import Iterable
from pathlib import Path

from compiled.spec import Component, Container, Pipeline
from localvertex import executors
from localvertex.errors import Refused
from localvertex.executors.python_step import PythonStepExecutor, missing_install_script
from localvertex.processes import pins


def replacements(pipeline: Pipeline, components: Iterable[Component], private_dir: Path) -> dict[str, str]:
    """Return the versions that are installed in place of pinned ones.

    Args:
        pipeline: The pipeline.
        components: Those that can run.
        private_dir: The folder of the environments, of which existing ones need no check.

    Raises:
        Refused: A pinned version cannot be installed, nor another one of the same minor.
    """
    known: dict[str, str] = {}
    reasons, seen = [], set[str]()
    for component in sorted(components, key=lambda each: each.path):
        container = pipeline.executors.get(component.executor)
        if not isinstance(container, Container) or not isinstance(executors.find(container), PythonStepExecutor):
            continue
        script = pins.replaced(missing_install_script(container, private_dir), known)
        if not script or script in seen or not pins.unsatisfied(script):
            continue
        found, reason = pins.resolve(script)
        known |= found
        seen |= {script, pins.replaced(script, known)}
        reasons += [f"{container.path}: {reason}"] * bool(reason)
    if reasons:
        raise Refused(reasons)
    return known
