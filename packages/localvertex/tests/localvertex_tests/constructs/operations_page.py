"""Writes docs/google-operations.md: `python -m localvertex_tests.constructs.operations_page`.

Each operation of google-cloud-pipeline-components is compiled to a pipeline of one step, and localvertex is asked
whether it would run it.
"""

import itertools
import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple

import google_cloud_pipeline_components
from google.protobuf import json_format
from localvertex_tests.credentials.operations import compile_operation, operations

from localvertex import executors
from localvertex._base.compiled.spec import Container, Pipeline
from localvertex.errors import Refused, UserError
from localvertex.runner.engine import open_file

PAGE = Path(__file__).parents[3] / "docs" / "google-operations.md"
RUNS, NEEDS_IMAGE, REFUSED = "Runs locally", "Needs `--image`", "Refused"
GOOGLES_JOB = "a custom job whose program is only in a Google container image"
SECTIONS = {"v1": "v1.", "preview": "preview."}
"""The public components; the page leaves out those that only Google's own pipelines use."""
REASONS = {
    "would run in Google Cloud": "creates, changes or reads resources in Google Cloud",
    "only in its container image": "its program is only in a Google container image (`--image`)",
    "is in its base image": "it imports what only its base image has (`[image]` of `localvertex.toml`)",
    "the container has no command": "it runs the entry point of a Google container image (`--image`)",
}
"""Part of a refusal -> the same in the words of the page; the first match counts."""

_TOP = """\
# Google's operations, one by one

What `localvertex run` does with the {count} public components of google-cloud-pipeline-components {version}. This page
is generated. Google is never called ([Credentials](localvertex.md#credentials-and-google-cloud)).

| | operations | |
|---|---|---|
| {runs} | {num_runs} | with the named executor |
| {needs_image} | {num_needs_image} | refused unless `--image` gives a local command |
| {refused} | {num_refused} | before anything runs, by name |

An operation that is itself a pipeline is refused if one of its steps is.
"""


class Operation(NamedTuple):
    """Treatment of one operation."""

    name: str
    here: str
    how: str


def classified() -> list[Operation]:
    """Compile and check every operation."""
    warnings.simplefilter("ignore")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, operation in operations():
            path = Path(folder) / f"{name}.json"
            try:
                compile_operation(operation, path)
            except ValueError:  # the e-mail, which can only be an exit task
                path.write_text(json_format.MessageToJson(operation.pipeline_spec))
            found.append(Operation(name, *_decision(path)))
    return sorted(found)


def _decision(path: Path) -> tuple[str, str]:
    try:
        pipeline = open_file(path).pipeline
    except Refused as refusal:
        return REFUSED, _reason(refusal.reasons)
    except UserError as error:
        return REFUSED, str(error).partition(": ")[2]
    if any(_is_job_of_google(executor) for executor in pipeline.executors.values()):
        return NEEDS_IMAGE, GOOGLES_JOB
    return RUNS, _executors(pipeline)


def _reason(reasons: list[str]) -> str:
    """Return the reason of a refusal in the words of the page."""
    known = (text for part, text in REASONS.items() if any(part in each for each in reasons))
    return next(known, reasons[0].partition(": ")[2])


def _executors(pipeline: Pipeline) -> str:
    # The importers of this page's own pipelines only provide the inputs.
    found = [executors.find_executor(each) for each in pipeline.executors.values()]
    return ", ".join(sorted({each.name for each in found if each} - {"importer"}))


def _is_job_of_google(executor: object) -> bool:
    """Return whether a custom job's payload names its pools itself; users' pools come from a parameter."""
    if not isinstance(executor, Container):
        return False
    found = executors.find_executor(executor)
    is_job = found is not None and found.name == "custom job"
    return is_job and "{{$.inputs.parameters['worker_pool_specs']}}" not in " ".join(executor.args)


def written(found: list[Operation]) -> str:
    """Return the page: in each section the operations by what happens to them."""
    found = [each for each in found if each.name.startswith(tuple(SECTIONS.values()))]
    count = {kind: sum(each.here == kind for each in found) for kind in (RUNS, NEEDS_IMAGE, REFUSED)}
    page = _TOP.format(
        count=len(found),
        version=google_cloud_pipeline_components.__version__,
        runs=RUNS,
        num_runs=count[RUNS],
        needs_image=NEEDS_IMAGE,
        num_needs_image=count[NEEDS_IMAGE],
        refused=REFUSED,
        num_refused=count[REFUSED],
    )
    for title, prefix in SECTIONS.items():
        page += f"\n## {title}\n"
        rows = [each for each in found if each.name.startswith(prefix)]
        order = list(count)
        rows.sort(key=lambda each: (order.index(each.here), each.how, each.name))
        for (here, how), group in itertools.groupby(rows, lambda each: (each.here, each.how)):
            page += f"\n{here}: {how}\n\n"
            page += "".join(f"- `{_short(each.name, prefix)}`\n" for each in group)
    return page


def _short(name: str, prefix: str) -> str:
    """Return an operation's name without the name of a pipeline's own module, which is nearly the same."""
    parts = name.removeprefix(prefix).split(".")
    return ".".join(part for part in parts[:-1] if not part.endswith("_pipeline")) + f".{parts[-1]}"


if __name__ == "__main__":
    PAGE.write_text(written(classified()))
