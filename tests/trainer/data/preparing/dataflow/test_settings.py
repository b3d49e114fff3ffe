"""The settings of a Dataflow job: what is refused, the job's name, and that workers have no public address."""

import dataclasses
import re
from typing import Any

import pytest

from localvertex._base.userinput.errors import UserError
from trainer.data.preparing.dataflow.service import emulator
from trainer.data.preparing.dataflow.settings import Settings

IMAGE = "us-docker.pkg.dev/my-project/images/image-training-cpu@sha256:" + "0" * 64
GIVEN: dict[str, Any] = {
    "project": "my-project",
    "region": "us-central1",
    "folder": "gs://bucket/root/prepared/0123456789abcdef0123456789abcdef",
    "image": IMAGE,
    "pause_seconds": 0.05,
}


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (
            "project",
            "{{$.pipeline_google_cloud_project_id}}",
            "project is '{{$.pipeline_google_cloud_project_id}}'; exp",
        ),
        ("region", "us-central1-a", "region is 'us-central1-a'; expected the pipeline's region, such as us-central1"),
        ("folder", "/home/me/runs/prepared/0123", "pipeline_root is '/home/me/runs/prepared/0123'; expected a folder"),
        ("folder", "gs://B/root", "pipeline_root is 'gs://B/root'; expected a folder in a bucket"),
        ("machine_type", "n1 --x", "dataflow_machine_type is 'n1 --x'; expected a machine type"),
        ("machine_type", "", "dataflow_machine_type is ''; expected a machine type"),
        ("max_workers", 0, "dataflow_max_workers is 0; expected a whole number from 1 to 4000"),
        ("disk_size_gb", 10, "dataflow_disk_size_gb is 10; expected a whole number from 30 to 65536"),
        ("subnetwork", "default", "dataflow_subnetwork is 'default'; expected regions/REGION/subnetworks/NAME"),
        (
            "subnetwork",
            "regions/europe-west4/subnetworks/a",
            "dataflow_subnetwork is in europe-west4; expected one in the pipeline's us-central1",
        ),
        ("service_account", "me", "dataflow_service_account is 'me'; expected the e-mail address"),
        ("service_account", "a@b.c --d", "dataflow_service_account is 'a@b.c --d'; expected the e-mail address"),
    ],
)
def test_a_wrong_value_is_refused_under_the_name_of_its_parameter(field: str, value: object, expected: str) -> None:
    with pytest.raises(UserError, match=re.escape(expected)):
        Settings(**GIVEN | {field: value})


def test_the_name_is_that_of_the_folder_and_fits_dataflow() -> None:
    name = Settings(**GIVEN).job_name
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)
    assert len(name) <= 63
    machines = {"machine_type": "n2-standard-8", "max_workers": 3, "image": "a/b:c", "disk_size_gb": 100}
    assert Settings(**GIVEN | machines).job_name == name
    assert Settings(**GIVEN | {"folder": GIVEN["folder"][:-1] + "e"}).job_name != name


def test_no_setting_gives_a_worker_a_public_address() -> None:
    for subnetwork in ("", "regions/us-central1/subnetworks/private"):
        words = Settings(**GIVEN, subnetwork=subnetwork).arguments()
        assert "--no_use_public_ips" in words
        assert [word for word in words if "use_public_ips" in word] == ["--no_use_public_ips"]
    assert not [field.name for field in dataclasses.fields(Settings) if "public" in field.name]


@pytest.mark.parametrize("host", ["dataflow.googleapis.com", "127.0.0.1:1", "localhost:1/x", "localhost.example.com:1"])
def test_the_variable_of_the_tests_leads_only_to_this_machine(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATAFLOW_EMULATOR_HOST", host)
    with pytest.raises(UserError, match="expected localhost:PORT"):
        emulator()
