"""Runs the compiled files of all constructs with kfp.local: `python -m localvertex_tests.constructs.kfp_local RESULT`.

RESULT receives one entry per construct: the output parameters, or null with the output of the run, which has the error.
Steps run in this environment, without containers. PipelineJobs are left out; kfp.local cannot read them.
"""

import contextlib
import io
import json
import logging
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from kfp import components, dsl, local
from localvertex_tests.constructs.compile import all_constructs
from localvertex_tests.constructs.construct import NOT_RUN, Construct, compiled_file


def outcome(name: str, construct: Construct, folder: str) -> tuple[dict[str, Any] | None, str]:
    """Run one file and return its output parameters, None when it fails, and what was printed."""
    printed = io.StringIO()
    handler = logging.StreamHandler(printed)
    logging.getLogger().addHandler(handler)
    outputs = None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=folder)
            task = components.load_component_from_file(str(compiled_file(name)))(**construct.parameters)
            outputs = {key: value for key, value in task.outputs.items() if not isinstance(value, dsl.Artifact)}
        except BaseException as error:
            printed.write(f"{type(error).__name__}: {error}")
    logging.getLogger().removeHandler(handler)
    return outputs, printed.getvalue()


def main(result: Path) -> None:
    """Run all constructs and write what came of them."""
    warnings.simplefilter("ignore")
    found = {}
    for name, construct in all_constructs().items():
        if not construct.is_vertex_only and construct.kfp_local is not NOT_RUN:
            with tempfile.TemporaryDirectory() as folder:
                found[name] = outcome(name, construct, folder)
    result.write_text(json.dumps(found, indent=1, default=repr))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
