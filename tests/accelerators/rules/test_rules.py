"""Each rule: the smallest job that breaks it, where the finding stands, and a neighbour that does not break it."""

import ast
import datetime
import inspect
import re

import pytest

from accelerators import check_custom_job, check_worker_pools
from accelerators.job.shape import Reading
from accelerators.rules.rules import RULES
from tests.accelerators.conftest import ROOT

RULE_ID = re.compile(r"[a-z]+(?:-[a-z]+)*")
TODAY = datetime.date(2026, 11, 20)
IMAGE = "europe-docker.pkg.dev/shop-ml/train/train:1"
REDUCTION_SERVER = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"


def pool(machine="n1-standard-8", gpu=None, count=None, replicas=1, **more):
    spec = {"machine_type": machine}
    spec |= {"accelerator_type": gpu} if gpu is not None else {}
    spec |= {"accelerator_count": count} if count is not None else {}
    fields = {"machine_spec": spec, "replica_count": replicas, "container_spec": {"image_uri": IMAGE}}
    return {key: value for key, value in (fields | more).items() if value is not None}


T4 = {"gpu": "NVIDIA_TESLA_T4", "count": 1}
L4 = pool("g2-standard-8", "NVIDIA_L4", 1)
MACHINE = "worker_pool_specs[0].machine_spec"


def with_machine(pools, **fields):
    return [one | {"machine_spec": one["machine_spec"] | fields} for one in pools]


RESERVED = {"reservation_affinity": {"reservation_affinity_type": "ANY_RESERVATION"}}

# pools, options of check_worker_pools, rule, severity, where, a word of the first alternative
CASES = [
    ([pool("n1-standard-2")], {}, "machine-type", "error", f"{MACHINE}.machine_type", "n1-standard-4"),
    ([pool("n1-standart-8", **T4)], {}, "machine-type", "error", f"{MACHINE}.machine_type", "n1-standard-8 with 1"),
    ([pool("n1-standard8", **T4)], {}, "machine-type", "error", f"{MACHINE}.machine_type", "n1-standard-8 with 1"),
    ([pool("n1-standard8")], {}, "machine-type", "error", f"{MACHINE}.machine_type", "n1-standard-8"),
    ([pool() | {"machine_spec": {}}], {}, "machine-type", "error", MACHINE, ""),
    ([pool(gpu="T4", count=1)], {}, "accelerator-type", "error", f"{MACHINE}.accelerator_type", "NVIDIA_TESLA_T4"),
    ([pool(gpu="nvidia-tesla-v100", count=1)], {}, "accelerator-type", "error", f"{MACHINE}.accelerator_type", "V100"),
    (
        [pool("g2-standard-8", "NVIDIA_TESLA_L4", 1)],
        {},
        "accelerator-type",
        "error",
        f"{MACHINE}.accelerator_type",
        "g2-standard-8 with 1 x NVIDIA_L4",
    ),
    ([pool(gpu="TPU_V4_POD", count=8)], {}, "accelerator-type", "error", f"{MACHINE}.accelerator_type", "n1"),
    ([pool(gpu="NVIDIA_TESLA_T4")], {}, "accelerator-pair", "error", MACHINE, "accelerator_count 1"),
    ([pool(gpu="NVIDIA_TESLA_T4", count=0)], {}, "accelerator-pair", "error", MACHINE, "accelerator_count 1"),
    ([pool(count=2)], {}, "accelerator-pair", "error", MACHINE, "n1-standard-8 with 2 x"),
    (
        [pool("n1-standard-32", "NVIDIA_TESLA_V100", 2)],
        {},
        "accelerator-count",
        "error",
        f"{MACHINE}.accelerator_count",
        "n1-standard-32 with 4 x NVIDIA_TESLA_V100",
    ),
    ([pool("e2-standard-4", **T4)], {}, "accelerator-machine", "error", f"{MACHINE}.accelerator_type", "n1-standard-4"),
    ([pool("a2-highgpu-1g")], {}, "accelerator-required", "error", MACHINE, "a2-highgpu-1g with 1 x NVIDIA_TESLA_A100"),
    ([pool("n1-highmem-2", **T4)], {}, "small-machine", "warning", f"{MACHINE}.machine_type", ""),
    ([pool(gpu="NVIDIA_TESLA_K80", count=1)], {}, "end-of-support", "error", f"{MACHINE}.accelerator_type", "T4"),
    (
        [pool(gpu="NVIDIA_TESLA_P100", count=1)],
        {"today": datetime.date(2026, 1, 1)},
        "end-of-support",
        "warning",
        f"{MACHINE}.accelerator_type",
        "",
    ),
    ([pool()], {"region": "europe-north9"}, "region", "error", "region", "europe-north1"),
    ([pool()], {"region": "us-central1-a"}, "region", "error", "region", "us-central1"),
    ([pool()], {"region": "asia-south2"}, "region-doubtful", "warning", "region", ""),
    ([L4], {"region": "europe-west1"}, "accelerator-region", "error", f"{MACHINE}.accelerator_type", "europe-west4"),
    ([pool(**T4)], {"region": "africa-south1"}, "accelerator-region", "error", f"{MACHINE}.accelerator_type", "T4 in"),
    (
        [pool(**T4)],
        {"region": "us-east4"},
        "accelerator-region-doubtful",
        "warning",
        f"{MACHINE}.accelerator_type",
        "NVIDIA_TESLA_T4 in us-",
    ),
    ([pool(**T4), pool(gpu="NVIDIA_TESLA_V100", count=1)], {}, "same-zone", "warning", "worker_pool_specs", ""),
    (
        [pool(**T4)],
        {"scheduling_strategy": "FLEX_START"},
        "flex-start-accelerator",
        "error",
        f"{MACHINE}.accelerator_type",
        "NVIDIA_L4",
    ),
    (
        [pool()],
        {"scheduling_strategy": "FLEX_START"},
        "flex-start-accelerator",
        "error",
        f"{MACHINE}.accelerator_type",
        "",
    ),
    (
        [pool("a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB", 8)],
        {"scheduling_strategy": "FLEX_START"},
        "flex-start-doubtful",
        "warning",
        f"{MACHINE}.accelerator_type",
        "",
    ),
    (
        [L4],
        {"scheduling_strategy": "FLEX_START", "timeout_seconds": 604801},
        "flex-start-timeout",
        "error",
        "scheduling.timeout",
        "604800s",
    ),
    (
        [L4, pool("g2-standard-12", "NVIDIA_L4", 1)],
        {"scheduling_strategy": "FLEX_START"},
        "flex-start-pools",
        "error",
        "worker_pool_specs",
        "",
    ),
    (
        with_machine([L4], **RESERVED),
        {"scheduling_strategy": "FLEX_START"},
        "flex-start-reservation",
        "error",
        f"{MACHINE}.reservation_affinity",
        "",
    ),
    (
        with_machine([L4], reservation_affinity={"reservation_affinity_type": "SPECIFIC_RESERVATION"}),
        {},
        "reservation",
        "error",
        f"{MACHINE}.reservation_affinity",
        "",
    ),
    (
        with_machine([L4], reservation_affinity={"reservation_affinity_type": "SOME"}),
        {},
        "reservation",
        "error",
        f"{MACHINE}.reservation_affinity.reservation_affinity_type",
        "",
    ),
    ([pool("a4x-highgpu-4g", "NVIDIA_GB200", 4)], {}, "reservation", "error", f"{MACHINE}.reservation_affinity", ""),
    ([pool("a4-highgpu-8g", "NVIDIA_B200", 8)], {}, "capacity", "warning", f"{MACHINE}.reservation_affinity", ""),
    ([L4], {"scheduling_strategy": "spot"}, "scheduling-strategy", "error", "scheduling.strategy", "SPOT"),
    ([L4], {"scheduling_strategy": "LOW_COST"}, "scheduling-deprecated", "warning", "scheduling.strategy", "SPOT"),
    (
        [L4, L4 | {"replica_count": 2}],
        {"scheduling_strategy": "SPOT"},
        "spot-without-restart",
        "warning",
        "scheduling.restart_job_on_worker_restart",
        "",
    ),
    (
        [L4],
        {"restart_job_on_worker_restart": True},
        "restart-is-not-spot",
        "warning",
        "scheduling.restart_job_on_worker_restart",
        "strategy SPOT",
    ),
    ([L4 | {"replica_count": 2}], {}, "pool-zero-replicas", "error", "worker_pool_specs[0].replica_count", ""),
    ([pool(replicas=None)], {}, "replica-count", "warning", "worker_pool_specs[0]", ""),
    ([L4, L4 | {"replica_count": 0}], {}, "replica-count", "error", "worker_pool_specs[1].replica_count", ""),
    ([L4, {}, L4], {}, "pool-gap", "error", "worker_pool_specs[2]", ""),
    ([L4, None, {}, L4], {}, "pool-gap", "error", "worker_pool_specs[3]", ""),
    ([], {}, "pool-missing", "error", "worker_pool_specs", ""),
    ([{}, L4], {}, "pool-missing", "error", "worker_pool_specs", ""),
    ([L4] * 5, {}, "pool-count", "error", "worker_pool_specs", ""),
    ([L4, L4, pool(), pool(replicas=2)], {}, "evaluator-count", "warning", "worker_pool_specs[3].replica_count", ""),
    (
        [pool(**T4), pool(container_spec={"image_uri": REDUCTION_SERVER})],
        {},
        "reduction-server",
        "error",
        "worker_pool_specs[1].container_spec.image_uri",
        "",
    ),
    (
        [pool(**T4), pool(**T4), pool(**T4, container_spec={"image_uri": REDUCTION_SERVER})],
        {},
        "reduction-server",
        "error",
        "worker_pool_specs[2].machine_spec",
        "n1-highcpu-16",
    ),
    (
        [pool(), pool(), pool("n1-highcpu-16", container_spec={"image_uri": REDUCTION_SERVER})],
        {},
        "reduction-server",
        "warning",
        "worker_pool_specs[2].container_spec.image_uri",
        "",
    ),
    (
        [pool(disk_spec={"boot_disk_type": "pd-sdd"})],
        {},
        "disk-type",
        "error",
        "worker_pool_specs[0].disk_spec.boot_disk_type",
        "pd-ssd",
    ),
    (
        [pool(disk_spec={"boot_disk_size_gb": 50})],
        {},
        "disk-size",
        "error",
        "worker_pool_specs[0].disk_spec.boot_disk_size_gb",
        "boot_disk_size_gb 100",
    ),
    (
        with_machine(
            [pool("a3-ultragpu-8g", "NVIDIA_H200_141GB", 8, disk_spec={"boot_disk_type": "pd-ssd"})], **RESERVED
        ),
        {},
        "disk-hyperdisk",
        "warning",
        "worker_pool_specs[0].disk_spec.boot_disk_type",
        "hyperdisk-balanced",
    ),
    ([pool(container_spec=None)], {}, "container-choice", "error", "worker_pool_specs[0]", ""),
    (
        [pool(python_package_spec={"executor_image_uri": IMAGE, "package_uris": ["gs://b/p"], "python_module": "m"})],
        {},
        "container-choice",
        "error",
        "worker_pool_specs[0]",
        "",
    ),
    ([pool(container_spec={})], {}, "required-field", "error", "worker_pool_specs[0].container_spec", ""),
    (
        [pool(container_spec=None, python_package_spec={"executor_image_uri": IMAGE, "package_uris": ["gs://b/p"]})],
        {},
        "required-field",
        "error",
        "worker_pool_specs[0].python_package_spec",
        "",
    ),
    (
        [pool(container_spec={"image_uri": IMAGE, "env": [{"name": "A", "value": "b"}] * 101})],
        {},
        "list-length",
        "error",
        "worker_pool_specs[0].container_spec.env",
        "",
    ),
    (
        [pool(container_spec={"image_uri": "gcr.io/PROJECT_ID/train"})],
        {},
        "placeholder-image",
        "warning",
        "worker_pool_specs[0].container_spec.image_uri",
        "",
    ),
    ([pool(machine_spce={})], {}, "unknown-field", "error", "worker_pool_specs[0].machine_spce", ""),
    ([pool(replicas="one")], {}, "field-type", "error", "worker_pool_specs[0].replica_count", ""),
    ([pool(replicas=float("nan"))], {}, "field-type", "error", "worker_pool_specs[0].replica_count", ""),
    ([pool(gpu="NVIDIA_TESLA_T4", count="1")], {}, "field-type", "error", f"{MACHINE}.accelerator_count", ""),
    ([pool(gpu="NVIDIA_TESLA_T4", count=True)], {}, "field-type", "error", f"{MACHINE}.accelerator_count", ""),
    ([pool(gpu="NVIDIA_TESLA_T4", count=1.0)], {}, "float-number", "error", f"{MACHINE}.accelerator_count", ""),
    (
        [{"machineSpec": L4["machine_spec"], "replica_count": 1, "container_spec": {"image_uri": IMAGE}}],
        {},
        "camel-case",
        "error",
        "worker_pool_specs[0].machineSpec",
        "",
    ),
    ([pool("cloud-tpu", "TPU_V2", 4)], {}, "tpu", "error", MACHINE, "cloud-tpu with 8 x TPU_V2"),
    ([pool("ct6e-standard-4t")], {}, "tpu", "error", MACHINE, ""),
    (
        with_machine([pool("ct6e-standard-4t", replicas=2)], tpu_topology="2x2"),
        {},
        "tpu",
        "error",
        "worker_pool_specs[0].replica_count",
        "",
    ),
]
SOUND = [
    ([pool(**T4)], {}),
    ([pool(gpu="", count=0)], {}),
    ([pool(gpu="ACCELERATOR_TYPE_UNSPECIFIED")], {}),
    ([L4, L4 | {"replica_count": 3}], {"scheduling_strategy": "SPOT", "restart_job_on_worker_restart": True}),
    ([L4, L4 | {"replica_count": 3}], {"restart_job_on_worker_restart": True}),
    ([L4], {"scheduling_strategy": "FLEX_START", "timeout_seconds": 604800, "region": "europe-west4"}),
    ([pool("a4-highgpu-8g", "NVIDIA_B200", 8)], {"scheduling_strategy": "SPOT"}),
    (with_machine([pool("a4x-highgpu-4g", "NVIDIA_GB200", 4)], **RESERVED), {}),
    ([pool("cloud-tpu", "TPU_V3", 32)], {}),
    (with_machine([pool("ct6e-standard-4t")], tpu_topology="2x2"), {}),
    ([L4, {}, {}], {}),
    ([pool(disk_spec={"boot_disk_type": "pd-ssd", "boot_disk_size_gb": 64000})], {}),
]


@pytest.mark.parametrize(("pools", "options", "rule", "severity", "where", "alternative"), CASES)
def test_rule(pools, options, rule, severity, where, alternative):
    found = [f for f in check_worker_pools(pools, **{"today": TODAY} | options) if f.rule == rule]
    assert [(finding.severity, finding.where) for finding in found[:1]] == [(severity, where)]
    assert alternative in (found[0].alternatives or ("",))[0]


@pytest.mark.parametrize(("pools", "options"), SOUND)
def test_sound_jobs_have_no_findings(pools, options):
    assert [f.message for f in check_worker_pools(pools, **{"today": TODAY} | options)] == []


def test_a_job_adds_what_pools_cannot_say():
    """It reads names and scheduling of a CustomJob, and takes a gap there for a warning only."""
    spec = {"worker_pool_specs": [L4, {}, L4], "scheduling": {"max_wait_duration": "60s", "disable_retries": True}}
    job = {"display_name": "cheap-spot-run", "job_spec": spec}
    job["job_spec"]["scheduling"] |= {"restart_job_on_worker_restart": True}
    found = {finding.rule: (finding.severity, finding.where) for finding in check_custom_job(job, today=TODAY)}
    assert found == {
        "pool-gap": ("warning", "job_spec.worker_pool_specs[2]"),
        "max-wait-unused": ("warning", "job_spec.scheduling.max_wait_duration"),
        "retries-disabled": ("warning", "job_spec.scheduling.disable_retries"),
        "restart-is-not-spot": ("warning", "job_spec.scheduling.restart_job_on_worker_restart"),
    }


def test_files_may_be_camel_case_where_components_may_not():
    job = {
        "workerPoolSpecs": [
            {
                "machineSpec": {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4"}
                | {"acceleratorCount": "1"},
                "replicaCount": 1.0,
                "containerSpec": {"imageUri": IMAGE},
            }
        ]
    }
    assert check_custom_job(job, today=TODAY) == []
    assert {finding.rule for finding in check_custom_job(job, today=TODAY, lenient=False)} == {
        "camel-case",
        "field-type",
        "float-number",
    }


def rules_in_the_code() -> set[str]:
    """Return the rule ids that a finding is made with anywhere in the package."""
    found = set()
    for path in sorted((ROOT / "accelerators").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                found |= {one for one in map(constant, rule_arguments(node)) if RULE_ID.fullmatch(one)}
    return found


def rule_arguments(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call that name a rule: of Finding, Job.note, Reading.error and Reading._wrong."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    place = {"note": 0, "error": 0, "_wrong": 3}.get(name, len(call.args))
    return [*call.args[place : place + 1], *(keyword.value for keyword in call.keywords if keyword.arg == "rule")]


def constant(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_every_rule_is_listed_documented_and_used() -> None:
    default_of_wrong = {inspect.signature(Reading._wrong).parameters["rule"].default}
    assert rules_in_the_code() | default_of_wrong == set(RULES)
    page = (ROOT / "docs" / "accelerators.md").read_text("utf-8")
    documented = dict(re.findall(r"^\| `([a-z][a-z-]+)` \| (.+) \|$", page, re.M))
    assert documented == RULES
