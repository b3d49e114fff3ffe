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
    assert "us-central1" in remarks["region"]


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
