"""Models, and endpoints on which they are deployed."""

from pathlib import Path
from typing import Any

from google.api_core import exceptions
from google.auth.exceptions import RefreshError
from google.cloud import aiplatform
from localvertex_tests.api.flows.transports.flow import flow
from localvertex_tests.support import serving


def upload(name: str, **options: Any) -> aiplatform.Model:
    """Upload a model, whose id is its name unless it is a version, with a container that answers."""
    named = {} if "parent_model" in options else {"model_id": name}
    return aiplatform.Model.upload(
        display_name=name,
        serving_container_image_uri="serving:1",
        serving_container_command=["python", "-P", serving.__file__],
        serving_container_health_route="/health",
        serving_container_predict_route="/predict",
        **named,
        **options,
    )


@flow(["uploaded", "1", ["default"], {"team": "vision"}, "weights"])
def model_upload() -> Any:
    from google.cloud import storage

    Path("weights").mkdir()
    (Path("weights") / "model.bin").write_text("weights")
    model = upload("uploaded", artifact_uri="weights", labels={"team": "vision"})
    blob = storage.Blob.from_string(f"{model.uri}/model.bin", storage.Client(credentials=model.credentials))
    aliases = list(model.version_aliases)
    return [model.display_name, model.version_id, aliases, dict(model.labels), blob.download_as_text()]


@flow({"1": [], "2": ["champion", "default"]})
def model_versions_and_aliases() -> Any:
    model = upload("versioned")
    upload("versioned", parent_model=model.resource_name, version_aliases=["champion"])
    registry = aiplatform.models.ModelRegistry(model.resource_name)
    registry.add_version_aliases(["old"], "1")
    registry.remove_version_aliases(["old"], "1")
    return {each.version_id: list(each.version_aliases) for each in registry.list_versions()}


@flow(["changed", "better", ["changed"]])
def model_update_and_list() -> Any:
    model = upload("updated").update(display_name="changed", description="better")
    listed = aiplatform.Model.list(filter='display_name="changed"')
    return [model.display_name, model.description, [each.display_name for each in listed]]


@flow([["masked", ""]])
def model_list_with_a_read_mask() -> Any:
    model = upload("masked", description="left out")
    parent, _, _ = model.resource_name.rpartition("/models/")
    request = {"parent": parent, "filter": 'display_name="masked"', "read_mask": {"paths": ["display_name"]}}
    return [[each.display_name, each.description] for each in model.api_client.list_models(request=request)]


@flow(exceptions.NotFound)
def model_get_that_is_missing() -> Any:
    aiplatform.Model("absent")


@flow(exceptions.NotFound)
def model_version_that_is_missing() -> Any:
    aiplatform.Model(upload("single").resource_name, version="7")


@flow(exceptions.AlreadyExists)
def model_id_that_exists() -> Any:
    for _ in range(2):
        upload("twice")


@flow(exceptions.InvalidArgument)
def model_alias_that_is_wrong() -> Any:
    upload("wrong-alias", version_aliases=["Wrong_Alias"])


@flow(exceptions.FailedPrecondition)
def model_delete_of_the_default_version() -> Any:
    model = upload("kept")
    upload("kept", parent_model=model.resource_name, is_default_version=False)
    model.versioning_registry.delete_version("1")


@flow(["1"])
def model_delete_of_a_version() -> Any:
    model = upload("shortened")
    upload("shortened", parent_model=model.resource_name, is_default_version=False)
    model.versioning_registry.delete_version("2")
    return [each.version_id for each in model.versioning_registry.list_versions()]


@flow(exceptions.NotFound)
def model_delete() -> Any:
    model = upload("deleted")
    model.delete()
    aiplatform.Model(model.resource_name)


@flow(exceptions.MethodNotImplemented)
def model_export_is_refused() -> Any:
    model = aiplatform.Model(upload("exported").resource_name)
    model.api_client.export_model(name=model.resource_name, output_config={"export_format_id": "custom-trained"})


@flow(exceptions.InvalidArgument)
def model_batch_predict_is_refused() -> Any:
    upload("batch").batch_predict("batch", gcs_source="gs://staging/x", gcs_destination_prefix="gs://staging/y")


def live(name: str, *words: str) -> aiplatform.Endpoint:
    """Create an endpoint with a model."""
    endpoint = aiplatform.Endpoint.create(name, endpoint_id=name)
    upload(name, serving_container_args=[*words]).deploy(endpoint, machine_type="n1-standard-2")
    return endpoint


@flow([[1, "two"], "1", 100])
def endpoint_deploy_and_predict() -> Any:
    endpoint = live("live")
    found = endpoint.predict(instances=[1, "two"])
    instances = [each["instance"] for each in found.predictions]
    return [instances, found.model_version_id, endpoint.traffic_split[found.deployed_model_id]]


@flow(RefreshError)
def endpoint_raw_predict_calls_google() -> Any:
    endpoint = live("raw")
    endpoint.raw_predict(b'{"instances": [1]}', {"Content-Type": "application/json"})


@flow(exceptions.InvalidArgument)
def endpoint_predict_with_a_wrong_instance() -> Any:
    live("wrong-instance").predict(instances=["bad"])


@flow(exceptions.FailedPrecondition)
def endpoint_predict_without_a_model() -> Any:
    aiplatform.Endpoint.create("empty").predict(instances=[1])


@flow([[40, 60], [0, 100], ["2"]])
def endpoint_traffic() -> Any:
    endpoint = live("split")
    second = upload("split", parent_model="split")
    second.deploy(endpoint, machine_type="n1-standard-2", traffic_percentage=60)
    old, new = sorted(endpoint.list_models(), key=lambda each: each.model_version_id)
    splits = [[endpoint.traffic_split[each.id] for each in (old, new)]]
    endpoint.update(traffic_split={old.id: 0, new.id: 100})
    splits += [[endpoint.traffic_split.get(each.id, 0) for each in (old, new)]]
    endpoint.undeploy(old.id)
    return [*splits, [each.model_version_id for each in endpoint.list_models()]]


@flow([])
def endpoint_undeploy_and_delete() -> Any:
    endpoint = live("undeployed")
    endpoint.undeploy_all()
    endpoint.delete()
    return aiplatform.Endpoint.list(filter='display_name="undeployed"')


@flow(exceptions.FailedPrecondition)
def endpoint_delete_with_a_deployed_model() -> Any:
    live("kept-endpoint").delete()


@flow(exceptions.FailedPrecondition)
def model_delete_while_it_is_deployed() -> Any:
    live("kept-model")
    aiplatform.Model("kept-model").delete()


@flow(exceptions.InvalidArgument)
def endpoint_deploy_on_a_wrong_machine() -> Any:
    upload("wrong-machine").deploy(machine_type="n1-standard-3")


@flow(exceptions.FailedPrecondition)
def endpoint_deploy_of_a_container_that_ends() -> Any:
    command = ["python", "-c", "raise SystemExit('no weights')"]
    aiplatform.Model.upload(
        display_name="ends", serving_container_image_uri="serving:1", serving_container_command=command
    ).deploy(machine_type="n1-standard-2")


@flow(exceptions.NotFound)
def endpoint_get_that_is_missing() -> Any:
    aiplatform.Endpoint("123").list_models()


@flow(exceptions.AlreadyExists)
def endpoint_id_that_exists() -> Any:
    for _ in range(2):
        aiplatform.Endpoint.create("twice", endpoint_id="twice")
