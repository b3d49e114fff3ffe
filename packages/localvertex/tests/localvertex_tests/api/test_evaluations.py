"""Evaluations of models through the real SDK: they belong to a version, and end with it."""

import re
from typing import Any

import pytest
from google.api_core import exceptions

from vertex_testing.server import Server

pytestmark = pytest.mark.slow

METRICS = {"accuracy": 0.9375, "confusion": {"rows": [{"row": [3.0, 1.0]}]}}


def upload(aiplatform: Any, **more: Any) -> Any:
    return aiplatform.Model.upload(display_name="evaluated", serving_container_image_uri="serving:1", **more)


def evaluate(model: Any, at: str, name: str) -> Any:
    content = {"display_name": name, "metrics_schema_uri": "gs://s/classification.yaml", "metrics": METRICS}
    parent = f"{model.resource_name}{at}"
    return model.api_client.import_model_evaluation(parent=parent, model_evaluation=content)


def test_evaluations_belong_to_a_version(server: Server, sdk: Any) -> None:
    aiplatform = sdk(server)
    first = upload(aiplatform)
    second = upload(aiplatform, parent_model=first.resource_name, is_default_version=True, version_aliases=["champion"])
    one, two = evaluate(first, "@1", "of one"), evaluate(first, "@champion", "of two")
    evaluate(first, "", "of the default")
    assert one.name.startswith(f"{first.resource_name}@1/evaluations/")
    (found,) = aiplatform.Model(f"{first.resource_name}@1").list_model_evaluations()
    assert (found.resource_name, found.display_name, found.metrics) == (one.name, "of one", METRICS)
    names = [each.display_name for each in aiplatform.Model(first.resource_name).list_model_evaluations()]
    assert names == ["of the default", "of two"]
    assert aiplatform.ModelEvaluation(two.name).metrics["accuracy"] == 0.9375
    # The id alone is enough, as the API documents names without a version.
    plain = f"{first.resource_name}/evaluations/{one.name.rpartition('/')[2]}"
    assert aiplatform.ModelEvaluation(plain).resource_name == one.name
    with pytest.raises(exceptions.NotFound):
        aiplatform.ModelEvaluation(two.name.replace("@2", "@1"))
    second.versioning_registry.delete_version("1")
    assert not (server.work_dir / "models" / first.name / "1").exists()
    with pytest.raises(exceptions.NotFound):
        evaluate(first, "@1", "too late")
    first.delete()
    assert not (server.work_dir / "models" / first.name).exists()


def test_lists_of_evaluations_are_filtered_and_paged(server: Server, sdk: Any) -> None:
    model = upload(sdk(server))
    for name in "abc":
        evaluate(model, "", name)
    pages = list(model.api_client.list_model_evaluations({"parent": model.resource_name, "page_size": 2}).pages)
    assert [[each.display_name for each in page.model_evaluations] for page in pages] == [["c", "b"], ["a"]]
    request = {"parent": model.resource_name, "filter": 'display_name="b"'}
    (found,) = model.api_client.list_model_evaluations(request)
    assert found.display_name == "b"


def test_a_damaged_evaluation_is_named_as_such_and_the_others_are_listed(server: Server, sdk: Any) -> None:
    model = upload(sdk(server))
    evaluate(model, "", "good")
    damaged = evaluate(model, "", "bad").name.rpartition("/")[2]
    path = server.work_dir / "models" / model.name / "1" / "evaluations" / f"{damaged}.json"
    for text in ("{", "[]", '{"unknown": 1}', '{"create_time": "yesterday"}'):
        path.write_text(text)
        names = sorted(each.display_name for each in model.list_model_evaluations())
        assert names[0] == "good"
        assert re.fullmatch(r"this evaluation is damaged \([^\n]+\)", names[1])
    assert server.text.count(f"evaluations/{damaged} is damaged") == 4


@pytest.mark.parametrize("body", [{}, {"modelEvaluation": {}}, {"modelEvaluation": {"colour": "red"}}])
def test_a_wrong_evaluation_is_refused(server: Server, sdk: Any, body: dict[str, Any]) -> None:
    model = upload(sdk(server))
    answer = server.call("POST", f"models/{model.name}/evaluations:import", body)
    assert (answer.status_code, answer.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert model.list_model_evaluations() == []
