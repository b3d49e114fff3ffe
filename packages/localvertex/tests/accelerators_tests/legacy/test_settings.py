"""A converted job as pipeline settings: its report covers every field of the old job."""

from pathlib import Path

import yaml
from accelerators_tests.legacy.conftest import configs, run
from accelerators_tests.seeds import INDONESIAN, seed

from accelerators.legacy.convert import convert

JOB = {
    "trainingInput": {
        "scaleTier": "CUSTOM",
        "masterType": "standard_v100",
        "region": "us-central1",
        "runtimeVersion": "2.1",
        "pythonVersion": "3.7",
        "jobDir": "gs://bucket/job",
        "packageUris": ["gs://bucket/package.tar.gz"],
        "pythonModule": "trainer.task",
    }
}


def test_pipeline_settings(data: Path) -> None:
    """The settings describe all machines, and the old program, which is not run, needs no decision."""
    compute_engine, legacy = configs(seed(INDONESIAN))
    done = run(compute_engine, as_settings=True)
    assert done.settings == {
        "machine_type": "n1-highcpu-16",
        "accelerator_type": "NVIDIA_TESLA_T4",
        "accelerator_count": 4,
        "replica_count": 10,
        "parameter_server_count": 3,
        "scheduling_strategy": "STANDARD",
    }
    assert not done.needs_decision
    assert run(legacy, as_settings=True).needs_decision
    full = run(yaml.safe_load((data / "legacy" / "everything.yaml").read_text("utf-8")), as_settings=True)
    assert full.settings["timeout_seconds"] == 7200
    assert full.settings["scheduling_strategy"] == "SPOT"
    assert full.settings["kms_key"].endswith("/cryptoKeys/k")
    assert (full.settings["boot_disk_type"], full.settings["boot_disk_size_gb"]) == ("pd-standard", 200)


def test_the_region_is_reported_as_part_of_the_submission() -> None:
    remarks = {remark.field: remark.message for remark in convert(JOB).report.remarks}
    assert "--region=us-central1" in remarks["region"]


def test_as_settings_every_field_of_the_program_is_reported() -> None:
    made = convert(JOB, as_settings=True)
    named = {remark.field for remark in made.report.remarks}
    assert {"region", "runtimeVersion", "pythonVersion", "jobDir", "packageUris", "pythonModule"} <= named


def test_as_settings_the_check_covers_the_printed_machines() -> None:
    old = dict(JOB["trainingInput"], workerType="standard_p100", workerCount=1)
    made = convert({"trainingInput": old}, as_settings=True, replace_retired=True)
    assert made.settings is not None
    assert made.settings["accelerator_type"] == "NVIDIA_TESLA_V100"
    assert not [finding for finding in made.findings if "NVIDIA_TESLA_T4" in finding.message]


def test_as_settings_each_field_is_reported_once() -> None:
    made = convert(JOB | {"jobId": "train_1"}, as_settings=True)
    named = [remark.field for remark in made.report.remarks]
    assert sorted(set(named)) == sorted(named)
    assert "jobId" in named
    assert "base_output_directory" not in named  # jobDir, its name in the file, covers it


def test_a_region_that_is_a_shell_variable_is_reported_once() -> None:
    made = convert({"trainingInput": {"scaleTier": "BASIC", "region": "$REGION"}})
    assert [remark.kind for remark in made.report.remarks if remark.field == "region"] == ["decide"]


def test_as_settings_the_pipeline_sets_the_restarts() -> None:
    training = {
        "scaleTier": "CUSTOM",
        "masterType": "n1-standard-4",
        "workerType": "n1-standard-4",
        "workerCount": 1,
        "scheduling": {"strategy": "LOW_COST"},
    }
    assert "spot-without-restart" in {finding.rule for finding in convert({"trainingInput": training}).findings}
    assert convert({"trainingInput": training}, as_settings=True).findings == []
