"""No field of an old job disappears without a word."""

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


def test_the_region_is_said_to_belong_to_the_submission() -> None:
    remarks = {remark.field: remark.message for remark in convert(JOB).report.remarks}
    assert "--region=us-central1" in remarks["region"]


def test_as_parameters_every_field_of_the_program_is_named() -> None:
    made = convert(JOB, as_parameters=True)
    named = {remark.field for remark in made.report.remarks}
    assert {"region", "runtimeVersion", "pythonVersion", "jobDir", "packageUris", "pythonModule"} <= named


def test_as_parameters_the_check_judges_what_is_given_out() -> None:
    old = dict(JOB["trainingInput"], workerType="standard_p100", workerCount=1)
    made = convert({"trainingInput": old}, as_parameters=True, replace_retired=True)
    assert made.parameters is not None
    assert made.parameters["accelerator_type"] == "NVIDIA_TESLA_V100"
    assert not [finding for finding in made.findings if "NVIDIA_TESLA_T4" in finding.message]


def test_as_parameters_each_field_is_told_once() -> None:
    made = convert(JOB | {"jobId": "train_1"}, as_parameters=True)
    named = [remark.field for remark in made.report.remarks]
    assert sorted(set(named)) == sorted(named)
    assert "jobId" in named
    assert "base_output_directory" not in named  # jobDir says it under the name that the file has


def test_a_region_that_is_a_shell_variable_is_told_once() -> None:
    made = convert({"trainingInput": {"scaleTier": "BASIC", "region": "$REGION"}})
    assert [remark.kind for remark in made.report.remarks if remark.field == "region"] == ["decide"]


def test_as_parameters_the_restarts_are_the_pipelines() -> None:
    training = {
        "scaleTier": "CUSTOM",
        "masterType": "n1-standard-4",
        "workerType": "n1-standard-4",
        "workerCount": 1,
        "scheduling": {"strategy": "LOW_COST"},
    }
    assert "spot-without-restart" in {finding.rule for finding in convert({"trainingInput": training}).findings}
    assert convert({"trainingInput": training}, as_parameters=True).findings == []
