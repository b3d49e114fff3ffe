"""The reports of `plan`: the page with the machines, the findings of their check and the configuration, and its log."""

import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from components.train.machines import Machines
from localvertex.machines import Finding
from trainer.data.pages import page


def report_plan(
    path: str,
    *,
    machines: Machines,
    region: str,
    findings: list[Finding],
    run_id: str,
    state: str,
    configuration: Mapping[str, Any],
    notes: Iterable[str] = (),
) -> None:
    """Write the HTML page, and print the notes, the state of the run and the warnings."""
    rows = {"machines": machines, "region": region} | dict(configuration)
    blocks: list[page.Block] = [
        page.Table(
            title="Machine check",
            note="" if findings else "Machine, GPUs and region are in the catalogue and compatible.",
            columns=["rule", "finding", "nearest alternatives"],
            rows=[[finding.rule, finding.message, ", ".join(finding.alternatives)] for finding in findings],
            states=["warn"] * len(findings),
        ),
        page.Table(
            title="Configuration",
            columns=["field", "value"],
            rows=[[name, str(value)] for name, value in rows.items()],
        ),
    ]
    content = page.render(title="Machine plan", subtitle=f"Run {run_id}: {state}.", blocks=blocks)
    pathlib.Path(path).write_text(content, encoding="utf-8")
    print(*notes, f"run {run_id}: {state}", *(f"warning: {finding.message}" for finding in findings), sep="\n")
