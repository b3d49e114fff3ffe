"""Command lines of AI Platform Training, pasted and wrong ones, and how their flags combine with a file."""

import pytest
from machines_tests.legacy.conftest import machines, remarks, run

from localvertex.machines.legacy.report import LegacyInputError


def test_pasted_command_lines() -> None:
    """Prompts, notebook marks, leading variables and continued lines are recognised."""
    lines = [
        "$ gcloud ai-platform jobs submit training j --region us-central1 --scale-tier basic",
        "!gcloud ml-engine jobs submit training j --region us-central1 --scale-tier basic",
        "JOB=j REGION=x gcloud ai-platform jobs submit training j --region us-central1 --scale-tier basic",
        "gcloud ai-platform jobs submit training j \\\n  --region=us-central1 \\\n  --scale-tier=BASIC",
    ]
    jobs = [run(None, line) for line in lines]
    assert all(machines(job) == [("n1-standard-4", None, None, 1)] for job in jobs)
    assert all(job.region == "us-central1" for job in jobs)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("gcloud ai-platform jobs submit prediction j", "expected `gcloud ai-platform jobs submit training`"),
        ("gcloud compute instances list", "the command is 'gcloud compute instances list'"),
        ("gcloud", "expected `gcloud ai-platform jobs submit training`"),
        ("gcloud ai-platform local train --module-name m", "expected `gcloud ai-platform jobs submit training`"),
        ("gcloud ai-platform jobs submit training j --sclae-tier basic", "did you mean --scale-tier?"),
        ("gcloud ai-platform jobs submit training j --epochs 5", "arguments of your own program go after"),
        ("gcloud ai-platform jobs submit training j extra", "arguments of your own program go after"),
        (
            "gcloud ai-platform jobs submit training j --job-dir --region us-central1",
            "--job-dir: expected one argument",
        ),
        ("gcloud ai-platform jobs submit training j --region", "--region: expected one argument"),
        ("gcloud ai-platform jobs submit training j --worker-count two", "expected a whole number"),
        ("gcloud ai-platform jobs submit training j --master-accelerator type=nvidia-tesla-t4", "count=4,type="),
        (
            "gcloud ai-platform jobs submit training j --master-accelerator count=1,typ=nvidia-tesla-t4",
            "expected e.g. count=4,type=nvidia-tesla-t4",
        ),
        ("gcloud ai-platform jobs submit training j --kms-key k", "--kms-location and --kms-keyring"),
        ("gcloud ai-platform jobs submit training 'j", "cannot be split into words"),
    ],
)
def test_wrong_command_lines(line: str, problem: str) -> None:
    with pytest.raises(LegacyInputError) as error:
        run(None, line)
    assert any(problem in one for one in error.value.problems)


def test_flags_win_and_packages_follow_gcloud() -> None:
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
    assert done.job["job_spec"]["enable_web_access"] is True
    assert done.region == "us-central1"


def test_what_a_shell_would_expand_is_kept_and_named() -> None:
    start = "gcloud ai-platform jobs submit training"
    own = "-- --name $USER --data '<your bucket>' \\\n"
    rest = "--region us-central1 --scale-tier BASIC --master-image-uri {IMAGE} \\\n " + own
    for name in ("'job_$(date +%Y%m%d)'", "'job_`date +%s`'", "$JOB", "${JOB}", "{JOB}", "<YOUR_JOB>", "'<your job>'"):
        done = run(None, f"{start} {name} {rest}")
        assert done.job["display_name"] == name.strip("'")
        container = done.job["job_spec"]["worker_pool_specs"][0]["container_spec"]
        assert container == {"image_uri": "{IMAGE}", "args": ["--name", "$USER", "--data", "<your bucket>"]}
        (message,) = remarks(done, "decide", "variables")
        assert "{IMAGE}, $USER, <your bucket>: variables and placeholders are kept" in message
    region = run({"trainingInput": {"scaleTier": "BASIC", "region": "$REGION"}})
    assert remarks(region, "decide", "variables")


@pytest.mark.parametrize(("text", "value"), [("yes", True), ("True", True), ("no", False), ("FALSE", False)])
def test_switches_with_values_take_what_gcloud_takes(text: str, value: bool) -> None:
    machines_of_two = "--runtime-version 1.15 --scale-tier CUSTOM --master-machine-type n1-standard-4 "
    machines_of_two += "--worker-machine-type n1-standard-4 --worker-count 1"
    line = f"gcloud ai-platform jobs submit training j {machines_of_two} --use-chief-in-tf-config {text}"
    assert (not remarks(run(None, line), "doubtful", "TF_CONFIG")) is value, "the program already looks for chief"
