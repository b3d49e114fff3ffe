"""The pipeline of the day: one command that writes the name of its run into a ledger, so that no run is doubled."""

import json
import warnings
from pathlib import Path
from typing import Any


def write_pipeline(path: Path) -> dict[str, Any]:
    """Compile the pipeline and return its content."""
    from kfp import compiler, dsl

    @dsl.container_component
    def note(ledger: str, run: str) -> dsl.ContainerSpec:
        return dsl.ContainerSpec(image="alpine", command=["sh", "-c", 'echo "$1" >> "$0"; sleep 1'], args=[ledger, run])

    @dsl.pipeline(name="day")
    def day(ledger: str) -> None:
        note(ledger=ledger, run=dsl.PIPELINE_JOB_NAME_PLACEHOLDER).set_caching_options(False)

    with warnings.catch_warnings():
        # kfp 2.17 deprecates JSON output; Vertex AI accepts it.
        warnings.simplefilter("ignore")
        compiler.Compiler().compile(day, str(path))
    content: dict[str, Any] = json.loads(path.read_text())
    return content
