"""The machine check knows the pipeline of this project."""

import json
from pathlib import Path

from machines_tests.conftest import TODAY

from localvertex.machines import check_pipeline
from localvertex.machines.document import examine_file


def test_the_pipeline_of_this_project_passes(compiled_training: Path) -> None:
    """Compiled without an image, it has no errors, only the warnings that keep it local."""
    for kind in ("json", "yaml"):
        seen = examine_file(compiled_training.with_suffix(f".{kind}"), region="us-central1", today=TODAY)
        assert {finding.rule for finding in seen.findings} == {"placeholder-image", "no-pipeline-root"}
        assert "machine_type='g2-standard-8'" in seen.notes[0]


def test_the_pipeline_of_this_project_is_checked_with_its_defaults(compiled_training: Path) -> None:
    spec = json.loads(compiled_training.read_text("utf-8"))
    spec["root"]["inputDefinitions"]["parameters"]["accelerator_count"]["defaultValue"] = 3.0
    (error,) = [finding for finding in check_pipeline(spec, today=TODAY) if finding.severity == "error"]
    assert (error.rule, error.path) == (
        "accelerator-count",
        "root.inputDefinitions.parameters.accelerator_count.defaultValue",
    )
