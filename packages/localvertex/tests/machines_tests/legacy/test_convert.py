"""Jobs of AI Platform Training, from the guides, the blog and public repositories."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from machines_tests.conftest import TODAY
from machines_tests.legacy.conftest import command_lines, configs, cpus, machines, remarks, run
from machines_tests.seeds import seed

from localvertex.machines import check_custom_job

GUIDES = {
    "000_de20d3b8ef635f13.txt": "NVIDIA_TESLA_K80",
    "002_2929c6e88aa1e131.txt": "NVIDIA_TESLA_T4",
    "003_cc377be172c4fa70.txt": "NVIDIA_TESLA_T4",
}


@pytest.mark.parametrize(("name", "gpu"), GUIDES.items())
def test_configs_of_the_guide(name: str, gpu: str) -> None:
    """4 GPUs on n1-highcpu-16, or complex_model_m_gpu, with 9 workers and 3 servers become pools 0 to 2."""
    compute_engine, legacy = configs(seed(name))
    with_gpus = ("n1-highcpu-16", gpu, 4)
    assert machines(run(compute_engine)) == [(*with_gpus, 1), (*with_gpus, 9), ("n1-highmem-8", None, None, 3)]
    k80 = ("n1-standard-16", "NVIDIA_TESLA_K80", 4)
    kept = run(legacy)
    assert machines(kept) == [(*k80, 1), (*k80, 9), ("n1-highmem-8", None, None, 3)]
    assert "NVIDIA_TESLA_T4" in remarks(kept, "decide", "master accelerator")[0]
    t4 = ("n1-standard-16", "NVIDIA_TESLA_T4", 4)
    replaced = run(legacy, replace_retired=True)
    assert machines(replaced) == [(*t4, 1), (*t4, 9), ("n1-highmem-8", None, None, 3)]
    assert [f.severity for f in replaced.findings] == ["warning"] * 3  # the image is still a placeholder


@pytest.mark.parametrize(("name", "gpu"), GUIDES.items())
def test_command_lines_of_the_guide(name: str, gpu: str) -> None:
    with_config, with_flags = command_lines(seed(name))
    compute_engine, _ = configs(seed(name))
    from_file = run(compute_engine, with_config)
    from_flags = run(None, with_flags)
    assert from_file.job["job_spec"] == from_flags.job["job_spec"]
    assert machines(from_flags)[0] == ("n1-highcpu-16", gpu, 4, 1)
    package = from_flags.job["job_spec"]["worker_pool_specs"][1]["python_package_spec"]
    assert package["args"] == ["--user_arg_1", "value_1", "...", "--user_arg_n", "value_n", "--job-dir=$JOB_DIR"]
    assert package["python_module"] == "$MAIN_APP_MODULE"
    (message,) = remarks(from_flags, "decide", "variables")
    assert all(name in message for name in ("$JOB_NAME", "$JOB_DIR", "$MAIN_APP_MODULE"))
    assert from_flags.region == "us-central1"


def test_blog() -> None:
    """The snake_case keys of the blog get a remark, and the flag CUSTOM replaces BASIC of the file."""
    text = seed("004_43e7a080ad5e4885.txt")
    flat = re.search(r"trainingInput: (.*) \|", text).group(1)
    document = {"trainingInput": yaml.safe_load(re.sub(r" (\w+:)", r"\n\1", flat))}
    assert document["trainingInput"]["master_type"] == "complex_model_m_gpu"
    (line,) = command_lines(text)
    done = run(document, line, replace_retired=True)
    assert machines(done) == [("n1-standard-16", "NVIDIA_TESLA_T4", 4, 1)]
    assert done.job["display_name"] == "mgpu_32"
    package = done.job["job_spec"]["worker_pool_specs"][0]["python_package_spec"]
    assert package["python_module"] == "trainer.task"
    assert package["args"] == ["--job-dir=gs://segment-expansion-dev/ml_job_temp/mgpu_5/"]
    prefix = done.job["job_spec"]["base_output_directory"]["output_uri_prefix"]
    assert prefix == "gs://segment-expansion-dev/ml_job_temp/mgpu_5/"
    assert remarks(done, "doubtful", "masterType")
    assert remarks(done, "changed", "scaleTier")
    assert "1.10" in remarks(done, "decide", "runtimeVersion")[0]
    # Alone, the file contradicts itself: BASIC has no machine types.
    assert remarks(run(document), "decide", "scaleTier")


def test_machine_names_of_the_guide(seed_machines: dict[str, tuple[str, int]]) -> None:
    assert len(seed_machines) == 9
    for name, (gpu, count) in seed_machines.items():
        document = {"trainingInput": {"scaleTier": "CUSTOM", "masterType": name}}
        ((machine, accelerator, number, _),) = machines(run(document))
        assert (accelerator, number) == (gpu, count)
        ((_, current, _, _),) = machines(run(document, replace_retired=True))
        assert current in ("NVIDIA_TESLA_T4", "NVIDIA_TESLA_V100")
        assert machine.startswith("n1-")


@pytest.mark.parametrize(
    ("tier", "pools"),
    [
        ("BASIC", [("n1-standard-4", None, None, 1)]),
        ("basic_gpu", [("n1-standard-8", "NVIDIA_TESLA_K80", 1, 1)]),
        ("STANDARD_1", [cpus("n1-standard-8", 1), cpus("n1-standard-8", 4), cpus("n1-standard-4", 3)]),
        ("PREMIUM_1", [cpus("n1-highcpu-16", 1), cpus("n1-highcpu-16", 19), cpus("n1-highmem-8", 11)]),
        ("BASIC_TPU", [("MACHINE_TYPE", None, None, 1)]),
    ],
)
def test_scale_tiers(tier: str, pools: list[Any]) -> None:
    assert machines(run({"trainingInput": {"scaleTier": tier}})) == pools


def test_public_shapes(data: Path) -> None:
    """The jobs of public repositories are converted; those that cannot run need a decision."""
    k80, v100, p100 = (f"NVIDIA_TESLA_{name}" for name in ("K80", "V100", "P100"))
    workers = [("n1-standard-8", k80, 1, 1), ("n1-standard-8", k80, 1, 9), cpus("n1-standard-4", 3)]
    full = [("n1-standard-16", v100, 2, 1), ("n1-standard-16", v100, 2, 2), (), cpus("n1-standard-4", 1)]
    expected = {
        "chief_multiworker": (0, [cpus("n1-standard-4", 1), cpus("n1-standard-4", 1)]),
        "container_with_labels": (0, [("n1-standard-4", "NVIDIA_TESLA_T4", 1, 1)]),
        "distributed_gpus": (1, workers),
        "everything": (1, full),
        "only_a_master": (1, [("n1-standard-32", k80, 8, 1)]),
        "tpu_worker": (1, [cpus("n1-standard-4", 1), cpus("MACHINE_TYPE", 1)]),
        "tuning_on_p100": (1, [("n1-standard-8", p100, 1, 1), cpus("n1-standard-4", 32)]),
    }
    paths = {path.stem: path for path in (data / "legacy").iterdir()}
    assert set(paths) == {*expected, "misspelt"}
    for name, (code, pools) in expected.items():
        done = run(yaml.safe_load(paths[name].read_text("utf-8")))
        assert (name, int(done.needs_decision), machines(done)) == (name, code, pools)


def test_every_field_of_a_full_job(data: Path) -> None:
    done = run(yaml.safe_load((data / "legacy" / "everything.yaml").read_text("utf-8")))
    spec = done.job["job_spec"]
    assert done.job["labels"] == {"team": "vision"}
    assert done.job["encryption_spec"]["kms_key_name"].endswith("/cryptoKeys/k")
    assert spec["scheduling"] == {"timeout": "7200s", "strategy": "SPOT", "restart_job_on_worker_restart": False}
    assert spec["service_account"] == "train@shop-ml.iam.gserviceaccount.com"
    assert spec["enable_web_access"] is True
    first = spec["worker_pool_specs"][0]
    assert first["disk_spec"] == {"boot_disk_type": "pd-standard", "boot_disk_size_gb": 200}
    assert first["python_package_spec"]["executor_image_uri"] == "IMAGE_URI"
    assert remarks(done, "decide", "runtimeVersion")
    assert {finding.rule for finding in done.findings} == {"placeholder-image", "pool-gap", "spot-without-restart"}
    for field in ("pythonVersion", "scheduling.maxWaitTime", "scheduling.priority"):
        assert remarks(done, "dropped", field)


def test_a_study_is_a_decision_and_no_trial_gets_the_folder_of_another_one(data: Path) -> None:
    document = yaml.safe_load((data / "legacy" / "tuning_on_p100.yaml").read_text("utf-8"))
    document["trainingInput"]["jobDir"] = "gs://b/j"
    done = run(document, replace_retired=True)
    assert machines(done)[0] == ("n1-standard-8", "NVIDIA_TESLA_V100", 1, 1)
    assert all("args" not in pool["container_spec"] for pool in done.job["job_spec"]["worker_pool_specs"])
    assert "as the trial_job_spec" in remarks(done, "decide", "hyperparameters")[0]


def test_container_jobs_keep_command_and_args() -> None:
    config = {"imageUri": "eu.gcr.io/p/i:1", "containerCommand": ["python"], "containerArgs": ["-m", "t"]}
    training = {"masterConfig": config, "jobDir": "gs://b/j", "workerCount": 1, "workerType": "n1-standard-4"}
    done = run({"trainingInput": training | {"scaleTier": "CUSTOM", "masterType": "n1-standard-4"}})
    container = {"image_uri": "eu.gcr.io/p/i:1", "command": ["python"], "args": ["-m", "t", "--job-dir=gs://b/j"]}
    assert [pool["container_spec"] for pool in done.job["job_spec"]["worker_pool_specs"]] == [container, container]


def test_results_pass_check_or_need_a_decision(data: Path) -> None:
    for path in (data / "legacy").iterdir():
        if path.stem == "misspelt":
            continue
        done = run(yaml.safe_load(path.read_text("utf-8")))
        assert done.findings == check_custom_job(done.job, region=done.region, today=TODAY)
        errors = [finding for finding in done.findings if finding.severity == "error"]
        assert not errors or done.report.needs_decision


@pytest.mark.parametrize("is_set", [True, False])
def test_restarts_keep_their_meaning(is_set: bool) -> None:
    done = run({"trainingInput": {"scheduling": {"resilientToWorkerRestart": is_set}}})
    assert done.job["job_spec"]["scheduling"]["restart_job_on_worker_restart"] is is_set


def test_what_the_service_would_refuse_is_a_decision() -> None:
    done = run({"trainingInput": {"jobDir": "/tmp/job", "nasJobSpec": {"resumeNasJobId": "x"}}})
    assert "is not in Cloud Storage" in remarks(done, "decide", "jobDir")[0]
    assert "Neural Architecture Search" in remarks(done, "decide", "nasJobSpec")[0]


def test_a_much_larger_gpu_instead_of_a_retired_one_is_doubtful() -> None:
    training = {"scaleTier": "CUSTOM", "masterType": "complex_model_l_gpu"}
    done = run({"trainingInput": training}, replace_retired=True)
    assert machines(done) == [("n1-standard-32", "NVIDIA_TESLA_V100", 8, 1)]
    assert "compare their prices" in remarks(done, "changed", "master accelerator")[0]
