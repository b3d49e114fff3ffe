"""The page of `plan`: the machines, the findings of their check, and the configuration."""

from typing import Any

import accelerators
from components.train.machines import Machines
from trainer.data.pages import page

_ROLES = ("chief", "workers", "parameter servers")


def plan_page(
    *,
    machines: Machines,
    region: str,
    worker_pool_specs: list[dict[str, Any]],
    findings: list[accelerators.Finding],
    run_id: str,
    state: str,
    configuration: dict[str, Any],
) -> str:
    """Return the HTML page with the machines, the findings of their check, and the configuration."""
    figures = [
        ("machines", str(machines.replica_count)),
        ("GPUs in total", str(machines.replica_count * machines.accelerator_count)),
        ("scheduling strategy", machines.scheduling_strategy),
        ("region", region),
    ]
    pools = [
        [
            f"{index} {role}",
            pool["replica_count"],
            pool["machine_spec"]["machine_type"],
            pool["machine_spec"].get("accelerator_type", "none"),
            pool["machine_spec"].get("accelerator_count", 0),
        ]
        for index, (role, pool) in enumerate(zip(_ROLES, worker_pool_specs, strict=False))
    ]
    fields = [[name, str(value)] for name, value in configuration.items()]
    blocks: list[page.Block] = [
        page.KeyFigures(figures=figures),
        page.Table(
            title="Worker pools", columns=["pool", "replicas", "machine", "GPU", "GPUs per machine"], rows=pools
        ),
        _findings(findings),
        page.Table(title="Configuration", columns=["field", "value"], rows=fields),
    ]
    return page.render(title="Machine plan", subtitle=f"Run {run_id}: {state}.", blocks=blocks)


def _findings(findings: list[accelerators.Finding]) -> page.Block:
    title = "Machine check"
    if not findings:
        return page.Text(title=title, text="No findings: machine, GPUs and region are in the catalogue and compatible.")
    return page.Table(
        title=title,
        columns=["rule", "finding", "nearest alternatives"],
        rows=[[finding.rule, finding.message, ", ".join(finding.alternatives)] for finding in findings],
        states=["warn"] * len(findings),
    )
