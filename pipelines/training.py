"""The pipeline for any training code: plan, train, compare, register and deploy a container's command."""

from typing import Any

from kfp import dsl

from components.any_code.compare import compare
from components.any_code.deploy import deploy
from components.any_code.export import export
from components.any_code.plan import plan
from components.any_code.record import record
from pipelines import signature, training_job
from pipelines.release import HERE, exit_task, register
from pipelines.settings import MACHINE_FIELDS, Settings
from pipelines.steps import inputs_of, step


def training(settings: Settings) -> Any:
    """Return the pipeline to compile, with the images, constants and default values of the settings."""

    def own(
        command: list,  # type: ignore[type-arg]  # kfp knows no list of texts or numbers
        image: str = settings.image,
        arguments: list = [],  # type: ignore[type-arg]  # noqa: B006 - kfp reads it once, as the default
        inputs: dict = {},  # type: ignore[type-arg]  # noqa: B006
        environment: dict = {},  # type: ignore[type-arg]  # noqa: B006
        secrets: dict = {},  # type: ignore[type-arg]  # noqa: B006
        labels: dict = {},  # type: ignore[type-arg]  # noqa: B006
        metric: str = "accuracy",
        direction: str = "",
        minimum_metric: str = "",
        force_promotion: bool = False,
        run_label: str = "",
        model_name: str = "",
        serving_image: str = settings.resources.serving_image,
        deploy_endpoint: str = "",
    ) -> None:
        """Run any training code, and register its model if it is better than the champion.

        Args:
            command: The command of the container, a list of words such as ["python", "train.py"].
            image: Container image of the training code, ideally by digest; its digest identifies the run.
            arguments: More words after the command; numbers are allowed.
            inputs: Name -> ADDRESS#VERSION, e.g. {"train": "gs://bucket/train.csv#1712345678"}; they identify the run.
            environment: Variables of the replicas; they identify the run. No secrets, because parameters are shown.
            secrets: Variable -> projects/P/secrets/S/versions/N in Secret Manager, read in the replicas.
            labels: Labels of the training job and of the registered version.
            metric: Name of the metric in result.json that decides.
            direction: `maximize` or `minimize`; empty for that of a known metric.
            minimum_metric: The worst accepted value, a number; empty for any.
            force_promotion: Promote the model even if a constant answer or the champion is as good, or better.
            run_label: Any text; a new one trains unchanged code again.
            model_name: Display name in the Model Registry; empty registers nothing.
            serving_image: Container image that serves the model.
            deploy_endpoint: Display name of the endpoint to deploy a new champion to; empty for none.
        """

    @signature.declare(own, MACHINE_FIELDS, settings.values)
    def graph(parameters: dict[str, Any]) -> None:
        values = settings.values | parameters
        fixed = settings.fixed(parameters)
        resource = fixed["persistent_resource_id"] or training_job.PERSISTENT_RESOURCE
        with dsl.ExitHandler(exit_task(settings), name="run"):
            of_plan = inputs_of(plan, values) | {"persistent_resource_id": resource}
            planned = step(plan(settings=fixed, **HERE, **of_plan), settings.step_image).outputs
            trained = training_job.trained(settings, values | planned, fixed)
            of_compare = inputs_of(compare, values | planned)
            compared = step(compare(**HERE, **of_compare).after(trained), settings.step_image)
            register(compared.outputs, settings, values | planned, export=export, record=record, deploy=deploy)

    return dsl.pipeline(name="training", display_name="Training")(graph)


pipeline = training(Settings())
"""The only pipeline of this module, for `kfp dsl compile --py pipelines/training.py`."""
