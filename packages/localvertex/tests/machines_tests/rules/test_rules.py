"""The list of rules, and jobs that break none."""

import ast
import re
from typing import Any

import pytest
from machines_tests.conftest import L4, RESERVED, ROOT, T4, TODAY, pool, with_machine

from localvertex.machines import check_custom_job, check_worker_pools
from localvertex.machines.rules.rules import RULES

RULE_ID = re.compile(r"[a-z]+(?:-[a-z]+)*")
SOUND = [
    ([pool(**T4)], {}),
    ([pool(gpu="", count=0)], {}),
    ([pool(gpu="ACCELERATOR_TYPE_UNSPECIFIED")], {}),
    ([L4, L4 | {"replica_count": 3}], {"scheduling_strategy": "SPOT", "restart_job_on_worker_restart": True}),
    ([L4, L4 | {"replica_count": 3}], {"restart_job_on_worker_restart": True}),
    ([L4], {"scheduling_strategy": "FLEX_START", "timeout_seconds": 604800, "region": "europe-west4"}),
    ([pool("a4-highgpu-8g", "NVIDIA_B200", 8)], {"scheduling_strategy": "SPOT"}),
    (with_machine([pool("a4-highgpu-8g", "NVIDIA_B200", 8)], **RESERVED), {}),
    ([pool("cloud-tpu", "TPU_V3", 32)], {}),
    ([pool("cloud-tpu", "TPU_V3", 8)], {"scheduling_strategy": "SPOT"}),
    (with_machine([pool("ct6e-standard-4t")], tpu_topology="2x2"), {}),
    ([L4, {}, {}], {}),
    ([pool(disk_spec={"boot_disk_type": "pd-ssd", "boot_disk_size_gb": 64000})], {}),
]


@pytest.mark.parametrize(("pools", "options"), SOUND)
def test_sound_jobs_have_no_findings(pools: list[dict[str, Any]], options: dict[str, Any]) -> None:
    assert [finding.message for finding in check_worker_pools(pools, **{"today": TODAY} | options)] == []


def test_a_reservation_on_a_persistent_resource_is_refused() -> None:
    spec = {"persistent_resource_id": "mine", "worker_pool_specs": with_machine([L4], **RESERVED)}
    (finding,) = check_custom_job(spec, today=TODAY)
    assert (finding.rule, finding.severity) == ("reservation", "error")
    assert "exclude each other" in finding.message


def test_a_custom_job_is_checked_with_its_name_and_scheduling() -> None:
    """A gap between its pools is only a warning."""
    spec = {"worker_pool_specs": [L4, {}, L4], "scheduling": {"max_wait_duration": "60s", "disable_retries": True}}
    job = {"display_name": "cheap-spot-run", "job_spec": spec}
    job["job_spec"]["scheduling"] |= {"restart_job_on_worker_restart": True}
    found = {finding.rule: (finding.severity, finding.path) for finding in check_custom_job(job, today=TODAY)}
    assert found == {
        "pool-gap": ("warning", "job_spec.worker_pool_specs[2]"),
        "max-wait-unused": ("warning", "job_spec.scheduling.max_wait_duration"),
        "retries-disabled": ("warning", "job_spec.scheduling.disable_retries"),
        "restart-is-not-spot": ("warning", "job_spec.scheduling.restart_job_on_worker_restart"),
    }


def rules_in_the_code() -> set[str]:
    """Return the rule ids that a finding is made with anywhere in the package."""
    found = set()
    for path in sorted((ROOT / "localvertex" / "machines").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                found |= {one for one in map(constant, rule_arguments(node)) if RULE_ID.fullmatch(one)}
    return found


def rule_arguments(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call that name a rule: of Finding, Findings.error and Findings.warning."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    first = call.args[:1] if name in ("error", "warning", "note") else []
    return [*first, *(keyword.value for keyword in call.keywords if keyword.arg == "rule")]


def constant(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_every_rule_is_listed_and_used() -> None:
    assert rules_in_the_code() == set(RULES)
