"""Versions that steps pin: replaced or refused if this Python cannot install them."""

from collections.abc import Callable
from pathlib import Path

from localvertex._base.compiled.spec import Pipeline
from localvertex._base.lines import WriteLine
from localvertex.containers.stand_ins import StandIns, missing_python
from localvertex.errors import Refusal, Refused
from localvertex.executors import find_executor
from localvertex.executors.python_step import PythonStepExecutor, missing_install_script
from localvertex.processes import pins
from localvertex.runner.checks.proposal import proposed, text_of
from localvertex.values.configuration import Configuration


def replacements(
    pipeline: Pipeline,
    private_dir: Path,
    stand_ins: StandIns,
    configuration: Configuration,
    run: pins.Run = pins.run,
    *,
    report: WriteLine = lambda _: None,
    warn: WriteLine = lambda _: None,
    has_time: Callable[[], bool] = lambda: True,
) -> dict[str, str]:
    """Return the versions that replace pinned ones.

    Args:
        pipeline: The pipeline.
        private_dir: The folder of the environments; existing ones are not checked.
        stand_ins: The interpreters of the steps.
        configuration: Names the packages of which any release will do.
        run: Runs pip; see `pins.resolve`.
        report: Receives a line for each step that is checked.
        warn: Receives a line for each step for which time ran out.
        has_time: Returns whether more may be checked.

    Raises:
        Refused: Neither a pinned version nor another version with the same minor number can be installed.
    """
    known: dict[str, str] = {}
    reasons, seen = list[Refusal](), set[str]()
    for container in sorted(pipeline.containers, key=lambda each: each.path.removesuffix(".container")):
        if not isinstance(find_executor(container), PythonStepExecutor):
            continue
        stand_in = stand_ins.of(container.image, container.command)
        script = pins.replaced(missing_install_script(container, private_dir, stand_in), known)
        if not script or script in seen or not (wanted := pins.unsatisfied(script, stand_in.python)):
            continue
        step = container.path.removeprefix("deploymentSpec.executors.").removesuffix(".container")
        if has_time():
            report(f"checking the packages of {step}: {', '.join(wanted)}")
            found, reason = pins.resolve(
                script, relaxed=configuration.packages.get("relax", ()), python=stand_in.python, run=run
            )
            known |= found
            # It starts with the pin.
            content = {"relax": [reason.partition("==")[0]]}
            text = f"{container.path}: {reason}{missing_python(container.image)}"
            reasons += [Refusal(text, step=container.path, table=("packages",), content=content)] * bool(reason)
        if not has_time():
            warn(f"not checked in {pins.MAX_SECONDS:.0f} s: the packages of {step}; the step installs them as they are")
        seen |= {script, pins.replaced(script, known)}
    if reasons:
        raise Refused([*reasons], text_of(proposed(pipeline, reasons, configuration), configuration))
    return known
