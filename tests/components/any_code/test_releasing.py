"""The deployment of a model of any training code: its own answers are compared with its predictions."""

import json
from pathlib import Path
from typing import Any

import pytest

from components.any_code import releasing
from components.registry.labels import ALIASES, PROJECT_LABEL
from components.registry.registry import Registry
from components.release.endpoints import Endpoints
from components.release.live_prediction import WrongAnswerError
from tests.components.conftest import REGION
from tests.support import any_server
from trainer.results import outcome
from vertex_testing.server import Server


def test_a_version_with_other_answers_than_its_predictions_serves_nobody(
    server: Server, registry: Registry, tmp_path: Path
) -> None:
    checkpoints, model = tmp_path / "checkpoints", tmp_path / "model"
    for folder in (checkpoints, model):
        folder.mkdir()
    (model / "weights.json").write_text("[1.0]")
    (checkpoints / "result.json").write_text('{"metrics": {"accuracy": 1.0}}')
    outcome.note_completion(str(checkpoints), run_id="0" * 16, inputs_sha256="d" * 64)
    container = {"imageUri": "serving:1", "command": ["python", "-P", any_server.__file__]}
    body = {"displayName": "any", "labels": dict([PROJECT_LABEL]), "versionAliases": list(ALIASES)}
    body |= {"containerSpec": container, "artifactUri": str(model)}
    response = server.call("POST", "models:upload", {"model": body}).json()["response"]
    root, endpoints = str(server.work_dir), Endpoints(region=REGION, pipeline_root=str(server.work_dir))

    def deploy(**line: Any) -> str:
        (checkpoints / "predictions.jsonl").write_text(json.dumps({"id": 1, "label": 1, "prediction": 1} | line))
        return releasing.deploy(
            checkpoint_directory=str(checkpoints),
            registered_version=f"{response['model']}@{response['modelVersionId']}",
            region=REGION,
            pipeline_root=root,
            deploy_endpoint="any",
            deploy_machine_type="n1-standard-2",
            service_account="",
        )

    with pytest.raises(WrongAnswerError, match=r"the endpoint answers 0\.0; predictions\.jsonl has 1"):
        deploy(instance=[-2.0])
    assert endpoints.deployed_models(endpoints.find("any")) == []
    endpoint = deploy(instance=[-2.0], answer=0.00001)
    (deployed,) = endpoints.deployed_models(endpoint)
    assert deployed.traffic == 100
    # Without an instance, there is nothing to send; the version stays.
    assert deploy() == endpoint
    endpoints.undeploy(endpoint, deployed, {})
