"""The page of the `plan` step: which machines train what, and what the check said about them."""

from typing import Any

import accelerators
from components.worker_pools import Machines
from trainer import report

ROLES = ("chief", "workers", "parameter servers")


def page(
    *,
    machines: Machines,
    region: str,
    worker_pool_specs: list[dict[str, Any]],
    findings: list[accelerators.Finding],
    run_id: str,
    is_finished: bool,
    configuration: dict[str, Any],
) -> str:
    """Return the HTML page."""
    state = "finished already: no machine is requested" if is_finished else "to be trained"
    pools = [
        [
            f"{index} {role}",
            pool["replica_count"],
            pool["machine_spec"]["machine_type"],
            pool["machine_spec"].get("accelerator_type", "none"),
            pool["machine_spec"].get("accelerator_count", 0),
        ]
        for index, (role, pool) in enumerate(zip(ROLES, worker_pool_specs, strict=False))
    ]
    said = [[f.rule, f.message, ", ".join(f.alternatives)] for f in findings]
    blocks: list[report.Block] = [
        report.Figures(figures=[("run", run_id), ("state", state), ("machines", str(machines)), ("region", region)]),
        report.Table(title="Worker pools", columns=["pool", "replicas", "machine", "GPU", "GPUs each"], rows=pools),
        report.Table(
            title="Findings of the machine check",
            columns=["rule", "finding", "nearest alternatives"],
            rows=said,
            note="" if said else "None: the catalogue knows this machine, its GPUs and this region.",
            states=["warn"] * len(said),
        ),
        report.Table(
            title="Configuration", columns=["field", "value"], rows=[[k, str(v)] for k, v in configuration.items()]
        ),
    ]
    return report.page(title="Machine plan", subtitle=f"Run {run_id}, {state}.", blocks=blocks)
