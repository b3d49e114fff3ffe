"""The `deploy` step: the registered version on an endpoint, tried with live images before the old one is removed."""

from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def deploy(
    registered_version: str,
    checkpoint_directory: str,
    dataset: dsl.Input[dsl.Dataset],
    predictions: dsl.Input[dsl.Artifact],
    region: str,
    pipeline_root: str,
    deploy_endpoint: str,
    deploy_machine_type: str,
    deploy_min_replicas: int,
    deploy_max_replicas: int,
    deploy_accelerator_type: str,
    deploy_accelerator_count: int,
    service_account: str = "",
) -> str:
    """Deploy with all traffic, compare live predictions with `evaluate`'s, and undeploy the old version.

    Args:
        registered_version: Resource name of the version, projects/P/locations/R/models/ID@NUMBER.
        checkpoint_directory: Folder with the checkpoints of the training job, next to which the deployment is noted.
        dataset: The dataset written by `prepare`; its test images are sent to the endpoint.
        predictions: Predictions written by `evaluate`, with the expected answers.
        region: Region of the model and the endpoint.
        pipeline_root: Folder or gs:// prefix of the run; a local one is deployed on this machine.
        deploy_endpoint: Display name of the endpoint, which is created if it does not exist.
        deploy_machine_type: Machine type of each replica.
        deploy_min_replicas: Replicas that always run, and cost money.
        deploy_max_replicas: Maximum number of replicas under load.
        deploy_accelerator_type: GPU type; empty for none.
        deploy_accelerator_count: GPUs per replica.
        service_account: Service account of the replicas; empty for the default one.

    Returns:
        Resource name of the endpoint.
    """
    given = dict(locals())
    from components.release.deployment import deploy as deploy_version, report_errors

    return report_errors(deploy_version)(**given | {"dataset": dataset.path, "predictions": predictions.path})
