"""Jobs of AI Platform Training: the guide's, the blog's, and such as public repositories have."""

import datetime
import re
import textwrap

import pytest
import yaml

from accelerators import check_custom_job
from accelerators.legacy.command_line import read_command
from accelerators.legacy.convert import convert
from accelerators.legacy.report import LegacyInputError, Report

TODAY = datetime.date(2026, 11, 20)
GUIDES = {
    "000_de20d3b8ef635f13.txt": "NVIDIA_TESLA_K80",
    "002_2929c6e88aa1e131.txt": "NVIDIA_TESLA_T4",
    "003_cc377be172c4fa70.txt": "NVIDIA_TESLA_T4",
}


def seed(data, name):
    return (data / "seeds" / name).read_text("utf-8")


def configs(text):
    """Return the config.yaml examples of a guide."""
    blocks = re.findall(r"^    trainingInput:\n(?:      .*\n)+", text, re.M)
    return [yaml.safe_load(textwrap.dedent(block)) for block in blocks]


def command_lines(text):
    """Return the command lines of a guide or of the blog, as they would be pasted."""
    found = re.findall(r"^ *gcloud (?:ai-platform|ml-engine) .*(?:\n {8,}.*)*", text, re.M)
    return [textwrap.dedent(line).rstrip(" |") for line in found]


def run(document=None, line=None, **options):
    report = Report()
    command = read_command([line], report) if line else None
    return convert(document, command, report=report, today=TODAY, **options)


def machines(conversion):
    """Return (machine_type, accelerator_type, accelerator_count, replica_count) of each pool."""
    spec = conversion.job.get("job_spec") or conversion.job["trial_job_spec"]
    return [
        (
            *(pool["machine_spec"].get(f) for f in ("machine_type", "accelerator_type", "accelerator_count")),
            pool["replica_count"],
        )
        if pool
        else ()
        for pool in spec["worker_pool_specs"]
    ]


def cpus(machine, replicas):
    return (machine, None, None, replicas)


def said(conversion, kind, field):
    return [r.message for r in conversion.report.remarks if (r.kind, r.field) == (kind, field)]


@pytest.mark.parametrize(("name", "gpu"), GUIDES.items())
def test_configs_of_the_guide(data, name, gpu):
    """It turns 4 GPUs on n1-highcpu-16 and complex_model_m_gpu with 9 workers and 3 servers into pools 0 to 2."""
    compute_engine, legacy = configs(seed(data, name))
    with_gpus = ("n1-highcpu-16", gpu, 4)
    assert machines(run(compute_engine)) == [(*with_gpus, 1), (*with_gpus, 9), ("n1-highmem-8", None, None, 3)]
    k80 = ("n1-standard-16", "NVIDIA_TESLA_K80", 4)
    kept = run(legacy)
    assert machines(kept) == [(*k80, 1), (*k80, 9), ("n1-highmem-8", None, None, 3)]
    assert "NVIDIA_TESLA_T4" in said(kept, "decide", "master accelerator")[0]
    t4 = ("n1-standard-16", "NVIDIA_TESLA_T4", 4)
    replaced = run(legacy, replace_retired=True)
    assert machines(replaced) == [(*t4, 1), (*t4, 9), ("n1-highmem-8", None, None, 3)]
    assert [f.severity for f in replaced.findings] == ["warning"] * 3  # the image is still to be named


@pytest.mark.parametrize(("name", "gpu"), GUIDES.items())
def test_command_lines_of_the_guide(data, name, gpu):
    with_config, with_flags = command_lines(seed(data, name))
    compute_engine, _ = configs(seed(data, name))
    from_file = run(compute_engine, with_config)
    from_flags = run(None, with_flags)
    assert from_file.job["job_spec"] == from_flags.job["job_spec"]
    assert machines(from_flags)[0] == ("n1-highcpu-16", gpu, 4, 1)
    package = from_flags.job["job_spec"]["worker_pool_specs"][1]["python_package_spec"]
    assert package["args"] == ["--user_arg_1", "value_1", "--user_arg_n", "value_n", "--job-dir=$JOB_DIR"]
    assert package["python_module"] == "$MAIN_APP_MODULE"
    for field in ("jobId", "jobDir", "pythonModule"):
        assert "shell variable" in said(from_flags, "decide", field)[0]
    assert said(from_flags, "dropped", "-- ...")
    assert from_flags.region == "us-central1"


def test_blog(data):
    """It reads the blog's snake_case keys with a remark, and the flag CUSTOM over the file's BASIC."""
    text = seed(data, "004_43e7a080ad5e4885.txt")
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
    assert said(done, "doubtful", "trainingInput.master_type")
    assert said(done, "changed", "scaleTier")
    assert "1.10" in said(done, "decide", "runtimeVersion")[0]
    # Alone, the file contradicts itself: BASIC has no machine types.
    assert said(run(document), "decide", "scaleTier")


def test_machine_names_of_the_guide(seed_machines):
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
def test_scale_tiers(tier, pools):
    assert machines(run({"trainingInput": {"scaleTier": tier}})) == pools


def test_public_shapes(data):
    """It converts what public repositories hold, and says what stands in the way of the rest."""
    k80, v100, p100 = (f"NVIDIA_TESLA_{name}" for name in ("K80", "V100", "P100"))
    workers = [("n1-standard-8", k80, 1, 1), ("n1-standard-8", k80, 1, 9), cpus("n1-standard-4", 3)]
    full = [("n1-standard-16", v100, 2, 1), ("n1-standard-16", v100, 2, 2), (), cpus("n1-standard-4", 1)]
    expected = {
        "chief_multiworker": (0, [cpus("n1-standard-4", 1), cpus("n1-standard-4", 1)]),
        "container_with_labels": (0, [("n1-standard-4", "NVIDIA_TESLA_T4", 1, 1)]),
        "distributed_gpus": (1, workers),
        "everything": (0, full),
        "only_a_master": (1, [("n1-standard-32", k80, 8, 1)]),
        "tpu_worker": (1, [cpus("n1-standard-4", 1), ("cloud-tpu", "TPU_V2", 8, 1)]),
        "tuning_on_p100": (1, [("n1-standard-8", p100, 1, 1), cpus("n1-standard-4", 32)]),
    }
    paths = {path.stem: path for path in (data / "legacy").iterdir()}
    assert set(paths) == {*expected, "misspelt"}
    for name, (code, pools) in expected.items():
        done = run(yaml.safe_load(paths[name].read_text("utf-8")))
        assert (name, int(done.needs_decision), machines(done)) == (name, code, pools)


def test_misspelt_keys_are_errors_with_the_right_one(data):
    with pytest.raises(LegacyInputError) as error:
        run(yaml.safe_load((data / "legacy" / "misspelt.yaml").read_text("utf-8")))
    (problem,) = error.value.problems
    assert "arameterServerCount" in problem
    assert "did you mean parameterServerCount?" in problem


def test_every_field_of_a_full_job(data):
    done = run(yaml.safe_load((data / "legacy" / "everything.yaml").read_text("utf-8")))
    spec = done.job["job_spec"]
    assert done.job["labels"] == {"team": "vision"}
    assert done.job["encryption_spec"]["kms_key_name"].endswith("/cryptoKeys/k")
    assert spec["scheduling"] == {"timeout": "7200s", "strategy": "SPOT", "restart_job_on_worker_restart": True}
    assert spec["service_account"] == "train@shop-ml.iam.gserviceaccount.com"
    assert spec["enable_web_access"] is True
    first = spec["worker_pool_specs"][0]
    assert first["disk_spec"] == {"boot_disk_type": "pd-standard", "boot_disk_size_gb": 200}
    image = "europe-docker.pkg.dev/vertex-ai/training/tf-gpu.2-11:latest"
    assert first["python_package_spec"]["executor_image_uri"] == image
    assert {finding.rule for finding in done.findings} == {"pool-gap"}
    for field in ("pythonVersion", "scheduling.maxWaitTime", "scheduling.priority"):
        assert said(done, "dropped", field)


def test_hyperparameters_become_a_tuning_job(data):
    done = run(yaml.safe_load((data / "legacy" / "tuning_on_p100.yaml").read_text("utf-8")), replace_retired=True)
    assert done.job["max_trial_count"] == 4
    assert done.job["study_spec"]["metrics"] == [{"metric_id": "episode_return", "goal": "MAXIMIZE"}]
    kinds = [
        next(key for key in parameter if key.endswith("_spec")) for parameter in done.job["study_spec"]["parameters"]
    ]
    assert kinds == ["categorical_value_spec", "integer_value_spec", "double_value_spec"]
    assert machines(done)[0] == ("n1-standard-8", "NVIDIA_TESLA_V100", 1, 1)
    assert said(done, "dropped", "hyperparameters.enableTrialEarlyStopping")
    assert not done.needs_decision


def test_flags_win_and_packages_follow_gcloud():
    document = {
        "trainingInput": {
            "scaleTier": "CUSTOM",
            "masterType": "n1-standard-4",
            "masterConfig": {
                "acceleratorConfig": {"count": 1, "type": "NVIDIA_TESLA_T4"},
                "diskConfig": {"bootDiskSizeGb": 200},
            },
            "packageUris": ["gs://old/old.tar.gz"],
            "enableWebAccess": True,
            "args": ["--old"],
            "region": "europe-west1",
        }
    }
    line = (
        "gcloud beta ai-platform jobs submit training j --master-machine-type=n1-standard-8 "
        "--master-accelerator=count=2,type=nvidia-tesla-v100 --packages gs://new/a.tar.gz,gs://new/b.tar.gz "
        "--module-name t.task --runtime-version 2.11 --region us-central1 --labels a=b,c=d "
        "--kms-key=k --kms-keyring=r --kms-location=global --kms-project=p --quiet -- --new 1"
    )
    done = run(document, line)
    assert machines(done) == [("n1-standard-8", "NVIDIA_TESLA_V100", 2, 1)]
    pool = done.job["job_spec"]["worker_pool_specs"][0]
    assert pool["disk_spec"] == {"boot_disk_size_gb": 200}
    assert pool["python_package_spec"]["package_uris"] == ["gs://new/a.tar.gz", "gs://new/b.tar.gz"]
    assert pool["python_package_spec"]["args"] == ["--new", "1"]
    assert done.job["labels"] == {"a": "b", "c": "d"}
    assert done.job["encryption_spec"]["kms_key_name"] == "projects/p/locations/global/keyRings/r/cryptoKeys/k"
    assert said(done, "dropped", "enableWebAccess")
    assert "enable_web_access" not in done.job["job_spec"]
    assert done.region == "us-central1"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("gcloud ai-platform jobs submit prediction j", "expected `gcloud ai-platform jobs submit training`"),
        ("gcloud compute instances list", "the command is 'compute instances list'"),
        ("gcloud", "expected `gcloud ai-platform jobs submit training`"),
        ("gcloud ai-platform local train --module-name m", "expected `gcloud ai-platform jobs submit training`"),
        ("gcloud ai-platform jobs submit training j --sclae-tier basic", "did you mean --scale-tier?"),
        ("gcloud ai-platform jobs submit training j --epochs 5", "arguments of your own program go after"),
        ("gcloud ai-platform jobs submit training j extra", "arguments of your own program go after"),
        ("gcloud ai-platform jobs submit training j --job-dir --region us-central1", "--job-dir has no value"),
        ("gcloud ai-platform jobs submit training j --region", "--region has no value"),
        ("gcloud ai-platform jobs submit training j --worker-count two", "expected a whole number"),
        ("gcloud ai-platform jobs submit training j --master-accelerator type=nvidia-tesla-t4", "count=4,type="),
        (
            "gcloud ai-platform jobs submit training j --master-accelerator count=1,typ=nvidia-tesla-t4",
            "did you mean type?",
        ),
        ("gcloud ai-platform jobs submit training j --kms-key k", "--kms-location and --kms-keyring"),
        ("gcloud ai-platform jobs submit training 'j", "cannot be split into words"),
    ],
)
def test_wrong_command_lines(line, problem):
    with pytest.raises(LegacyInputError) as error:
        run(None, line)
    assert any(problem in one for one in error.value.problems)


def test_pasted_command_lines():
    """It reads prompts, notebook marks, variables in front, typographic dashes and what a shell would run next."""
    lines = [
        "$ gcloud ai-platform jobs submit training j --region us-central1 --scale-tier basic",
        "!gcloud ml-engine jobs submit training j --region us-central1 --scale-tier basic",
        "JOB=j REGION=x gcloud ai-platform jobs submit training j --region us-central1 --scale-tier basic && echo done",
        "gcloud ai-platform jobs submit training j \\\n  --region=us-central1 \\\n  --scale-tier=BASIC",
        "gcloud ai-platform jobs submit training j \u2013region us-central1 \u2014scale-tier basic",
    ]
    jobs = [run(None, line) for line in lines]
    assert all(machines(job) == [("n1-standard-4", None, None, 1)] for job in jobs)
    assert all(job.region == "us-central1" for job in jobs)


@pytest.mark.parametrize(
    ("training", "problem"),
    [
        ({"masterTyp": "standard"}, "did you mean masterType?"),
        ({"workerCount": "two"}, "expected a whole number"),
        ({"workerCount": 2.0}, "expected a whole number"),
        ({"workerCount": -1}, "expected a whole number"),
        ({"args": "--a"}, "text per line"),
        ({"masterConfig": "x"}, "expected the fields"),
        ({"masterType": "standard", "master_type": "large_model"}, "given twice"),
        ({"hyperparameters": {"params": {}}}, "expected a list"),
        ([], "expected the fields"),
    ],
)
def test_wrong_configs(training, problem):
    with pytest.raises(LegacyInputError) as error:
        run({"trainingInput": training})
    assert any(problem in one for one in error.value.problems)


def test_keys_on_the_wrong_level():
    with pytest.raises(LegacyInputError, match="belongs under trainingInput"):
        run({"scaleTier": "BASIC"})
    with pytest.raises(LegacyInputError, match="no fields under trainingInput"):
        run({})
    with pytest.raises(LegacyInputError, match="no fields under trainingInput"):
        run({"trainingInput": None})
    with pytest.raises(LegacyInputError, match="already a Vertex AI job"):
        run({"jobSpec": {"workerPoolSpecs": []}})


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"trainingInput": {"maxRunningTime": "3600s"}}, "trainingInput.scheduling.maxRunningTime"),
        ({"trainingInput": {"labels": {"a": "b"}}}, "at the top level, next to trainingInput: (labels)"),
        (
            {"trainingInput": {"scheduling": {"labels": {"a": "b"}}}},
            "at the top level, next to trainingInput: (labels)",
        ),
        ({"trainingInput": {"masterConfig": {"worker_config": {}}}}, "trainingInput.workerConfig"),
        (
            {"trainingInput": {"workerConfig": {"bootDiskType": "pd-ssd"}}},
            "trainingInput.workerConfig.diskConfig.bootDiskType",
        ),
        (
            {"trainingInput": {"hyperparameters": {"params": [{"goal": "MAXIMIZE"}]}}},
            "trainingInput.hyperparameters.goal",
        ),
        ({"trainingInput": {"hyperparameters": {"minValue": 1}}}, "trainingInput.hyperparameters.params[].minValue"),
        ({"maxWaitTime": "5s"}, "trainingInput.scheduling.maxWaitTime"),
    ],
)
def test_a_key_in_the_wrong_block_is_told_its_own(document, place):
    with pytest.raises(LegacyInputError) as error:
        run(document)
    (problem,) = error.value.problems
    assert "it belongs" in problem
    assert place in problem


def test_versions_without_quotes_are_doubtful():
    done = run({"trainingInput": {"runtimeVersion": 2.1, "pythonModule": "a.b", "packageUris": ["gs://b/p.tar.gz"]}})
    assert "1.10 and 1.1 as the same number" in said(done, "doubtful", "trainingInput.runtimeVersion")[0]


def test_container_jobs_keep_command_and_args():
    config = {"imageUri": "eu.gcr.io/p/i:1", "containerCommand": ["python"], "containerArgs": ["-m", "t"]}
    training = {"masterConfig": config, "jobDir": "gs://b/j", "workerCount": 1, "workerType": "n1-standard-4"}
    done = run({"trainingInput": training | {"scaleTier": "CUSTOM", "masterType": "n1-standard-4"}})
    container = {"image_uri": "eu.gcr.io/p/i:1", "command": ["python"], "args": ["-m", "t", "--job-dir=gs://b/j"]}
    assert [pool["container_spec"] for pool in done.job["job_spec"]["worker_pool_specs"]] == [container, container]


def test_pipeline_parameters(data):
    """It gives our pipeline's parameters, and no remark about the old program, which it does not run."""
    compute_engine, legacy = configs(seed(data, "002_2929c6e88aa1e131.txt"))
    done = run(compute_engine, as_parameters=True)
    assert done.parameters == {
        "machine_type": "n1-highcpu-16",
        "accelerator_type": "NVIDIA_TESLA_T4",
        "accelerator_count": 4,
        "replica_count": 10,
        "parameter_server_count": 3,
        "scheduling_strategy": "STANDARD",
    }
    assert not done.needs_decision
    assert run(legacy, as_parameters=True).needs_decision
    full = run(yaml.safe_load((data / "legacy" / "everything.yaml").read_text("utf-8")), as_parameters=True)
    assert full.parameters["timeout_seconds"] == 7200
    assert full.parameters["scheduling_strategy"] == "SPOT"
    assert full.parameters["kms_key"].endswith("/cryptoKeys/k")


def test_pipeline_parameters_exist(data, repository):
    """It uses names that the pipeline has."""
    source = (repository / "pipelines" / "image_training.py").read_text("utf-8")
    full = run(yaml.safe_load((data / "legacy" / "everything.yaml").read_text("utf-8")), as_parameters=True)
    for name in full.parameters:
        assert re.search(rf"^        {name}: ", source, re.M), name


def test_results_pass_check_or_say_why_not(data):
    for path in (data / "legacy").iterdir():
        if path.stem == "misspelt":
            continue
        done = run(yaml.safe_load(path.read_text("utf-8")))
        if "job_spec" in done.job:
            assert done.findings == check_custom_job(done.job, region=done.region, today=TODAY)
        errors = [finding for finding in done.findings if finding.severity == "error"]
        assert not errors or done.needs_decision
