"""Display names and labels are checked as the API documents them."""

from typing import Any

import pytest

from localvertex.api.rest import messages
from localvertex.api.rest.errors import ApiError
from vertex_testing.server import Server

JOBS = ("customJobs", "trainingPipelines", "hyperparameterTuningJobs", "batchPredictionJobs")

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a long name": ({"displayName": "x" * 129}, "displayName: expected up to 128"),
    "an upper-case key": ({"labels": {"Team": "a"}}, "key 'Team'"),
    "an upper-case value": ({"labels": {"team": "A"}}, "value 'A' of 'team'"),
    "a space": ({"labels": {"a key": "a"}}, "key 'a key'"),
    "a dot": ({"labels": {"a": "1.5"}}, "value '1.5'"),
    "a newline": ({"labels": {"a": "b\n"}}, "value"),
    "no key": ({"labels": {"": "a"}}, "key ''"),
    "a long key": ({"labels": {"x" * 65: "a"}}, "up to 64"),
    "a long value": ({"labels": {"a": "x" * 65}}, "up to 64"),
    "many labels": ({"labels": {f"k{each}": "v" for each in range(65)}}, "up to 64, found 65"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_name_is_refused(name: str) -> None:
    content, reason = WRONG[name]
    for message, body in {
        "PipelineJob": content,
        "CustomJob": content,
        "Model": content,
        "Schedule": {"createPipelineJobRequest": {"pipelineJob": content}},
    }.items():
        with pytest.raises(ApiError, match=reason):
            messages.parse(message, body)


@pytest.mark.parametrize("labels", [{"team": "vision-2_x", "größe": "日本"}, {"a": ""}, {"x" * 64: "ß" * 64}])
def test_a_documented_name_is_accepted(labels: dict[str, str]) -> None:
    body = {"displayName": "ä" * 128, "labels": labels}
    assert messages.parse("PipelineJob", body) == body


@pytest.mark.slow
@pytest.mark.parametrize("collection", ["pipelineJobs", *JOBS, "schedules", "models:upload"])
def test_every_collection_checks_names(server: Server, collection: str) -> None:
    resource = {"displayName": "x" * 129}
    body = {"model": resource} if collection == "models:upload" else resource
    answer = server.call("POST", collection, body)
    assert answer.status_code == 400
    assert "displayName: expected up to 128 characters, found 129" in answer.json()["error"]["message"]
