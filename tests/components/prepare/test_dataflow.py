"""When `prepare` may start a Dataflow job: not from a laptop, not without Beam, and only for images in a bucket."""

import importlib.util
from typing import Any

import pytest

from components.container_image import PLACEHOLDER_IMAGE
from components.prepare.dataflow import dataflow_settings
from localvertex._base.userinput.errors import UserError

IMAGE = "us-docker.pkg.dev/my-project/images/image-training-cpu@sha256:" + "0" * 64
PARAMETERS: dict[str, Any] = {
    "project": "my-project",
    "region": "us-central1",
    "image": IMAGE,
    "folder": "gs://my-project-image-training/pipelines",
    "machine_type": "e2-standard-4",
    "max_workers": 10,
    "disk_size_gb": 50,
    "subnetwork": "",
    "service_account": "",
}
RUN: dict[str, Any] = {
    "prepare_engine": "dataflow",
    "source": "gs://my-project-images/birds",
}


@pytest.fixture(autouse=True)
def on_vertex(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of a local run, and a container image with Apache Beam."""
    monkeypatch.delenv("LOCALVERTEX_STEP", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)


def test_on_vertex_the_job_has_the_parameters() -> None:
    found = dataflow_settings(PARAMETERS | {"max_workers": 3.0}, **RUN)
    assert found
    assert (found.image, found.folder, found.max_workers) == (IMAGE, PARAMETERS["folder"], 3)


def test_without_dataflow_nothing_is_asked_of_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALVERTEX_STEP", "1")
    assert dataflow_settings({}, source="digits", prepare_engine="local") is None


def test_a_local_run_starts_nothing_in_the_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALVERTEX_STEP", "1")
    with pytest.raises(UserError, match=r"does not: set prepare_engine=local$"):
        dataflow_settings(PARAMETERS, **RUN)


@pytest.mark.parametrize(
    ("parameters", "run", "expected"),
    [
        ({"image": PLACEHOLDER_IMAGE}, {}, "this step has no Apache Beam; build and compile for the one"),
        ({"image": ""}, {}, "Apache Beam; .* that has it: python cloud.py up --dataflow --project my-project$"),
        ({}, {"source": "/data/birds"}, "source is '/data/birds'; Dataflow's workers read only gs://"),
        ({}, {"source": "tfds:mnist"}, "source is 'tfds:mnist'; Dataflow's workers read only gs://"),
        ({}, {"source": "digits"}, "source is 'digits'; Dataflow's workers read only gs://"),
        ({"folder": "/tmp/runs/1"}, {}, "pipeline_root is '/tmp/runs/1'; expected a folder in a bucket"),
        ({"project": "{{$.pipeline_google_cloud_project_id}}"}, {}, "project is '{{\\$.pipeline"),
        ({"max_workers": 0}, {}, "dataflow_max_workers is 0; expected a whole number from 1 to 4000"),
    ],
)
def test_what_dataflow_would_refuse_is_refused_before_an_image_is_read(
    parameters: dict[str, Any], run: dict[str, Any], expected: str
) -> None:
    with pytest.raises(UserError, match=expected):
        dataflow_settings(PARAMETERS | parameters, **RUN | run)


def test_an_image_without_beam_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="has no Apache Beam"):
        dataflow_settings(PARAMETERS, **RUN)


def test_another_engine_is_refused() -> None:
    with pytest.raises(UserError, match=r"^prepare_engine is 'spark'; expected one of: local, dataflow$"):
        dataflow_settings({}, source="digits", prepare_engine="spark")
