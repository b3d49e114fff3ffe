"""The image classification pipeline: prepare, plan, train, evaluate, export and register."""

import dataclasses
from typing import Any

from kfp import dsl

from components.evaluate import evaluate
from components.plan.plan import plan
from components.prepare.prepare import prepare
from pipelines import signature, training_job
from pipelines.release import HERE, exit_task, release
from pipelines.settings import MACHINE_FIELDS, Settings
from pipelines.steps import inputs_of, step, with_gpus, with_resources
from trainer.config import TrainConfig

_NAME = "image-training"
_DESCRIBED = (*dataclasses.fields(TrainConfig), *MACHINE_FIELDS)
"""Fields that are parameters with the type, default and description that they have there."""


def _parameters(
    source: str = "digits",
    image_size: int = 32,
    max_examples: int = 0,
    prepare_engine: str = "local",
    reread: bool = False,
    exact: bool = False,
    run_label: str = "",
    minimum_score: float = 0.8,
    force_promotion: bool = False,
    model_name: str = _NAME,
    deploy_endpoint: str = "",
) -> None:
    """Train an image classifier and register it if it is accurate enough.

    Data: source, image_size; max_examples, prepare_engine, reread
    Training: model, epochs, recipe, metric; weights, trainable, global_batch_size, optimizer, learning_rate
    Training: ; learning_rate_schedule, warmup_fraction, augment, shuffle, max_steps, patience, minimum_accuracy_gain
    Training: ; seed, exact, run_label
    Machine: machine_type, accelerator_type, accelerator_count; scheduling_strategy, replica_count
    Machine: ; parameter_server_count
    Release: minimum_score, model_name; force_promotion
    Deployment: deploy_endpoint

    Args:
        source: `digits`, an existing folder (gs://, or an absolute path) with one sub-folder per class, manifests such
            as `gs://BUCKET/export.jsonl`, or `tfds:NAME`.
        image_size: Height and width of the images, in pixels (8 to 2048); 224 or 300 for resnet50.
        max_examples: Maximum number of images, for a trial; 0 uses all.
        prepare_engine: Where the images are read: local (in the step `prepare`) or dataflow (on many machines).
        reread: Read all images again, including those that have not changed since the previous run.
        exact: Bit-identical weights on every run and after every restart, at some cost in speed.
        run_label: Any text; a new one trains an unchanged configuration again.
        minimum_score: Register the model only at this test score (0 to 1) or above (formerly minimum_accuracy).
        force_promotion: Promote the model even if a constant answer or the champion is as good, or better.
        model_name: Display name in the Model Registry; each registered model is a version of it.
        deploy_endpoint: Display name of the endpoint to deploy a new champion to; empty for none.
    """


def image_training(settings: Settings) -> Any:
    """Return the pipeline to compile, with the images, constants and default values of the settings."""

    @signature.declare(_parameters, _DESCRIBED, settings.values | {"recipe": settings.recipe})
    def graph(parameters: dict[str, Any]) -> None:
        # Constants and parameters by name; a step takes those that it has an input of the same name for.
        values = settings.values | parameters
        fixed = settings.fixed(parameters)
        of_plan = inputs_of(plan, values)
        resource = fixed["persistent_resource_id"] or training_job.PERSISTENT_RESOURCE
        with dsl.ExitHandler(exit_task(settings), name="run"):
            prepared = prepare(
                **inputs_of(prepare, values),
                **HERE,
                project=training_job.PROJECT,
                image=settings.step_image,
                dataflow=settings.preparing.workers,
                # `prepare` has an input of its own for the recipe.
                settings={name: value for name, value in of_plan.items() if name != "recipe"}
                | fixed
                | {"persistent_resource_id": resource, "image": settings.image},
            )
            dataset = with_resources(step(prepared, settings.step_image), settings.steps).outputs["dataset"]
            planned = plan(
                dataset=dataset,
                image=settings.image,
                settings=fixed,
                **HERE,
                **of_plan | {"persistent_resource_id": resource},
            )
            plan_outputs = step(planned, settings.step_image).outputs
            with dsl.If(plan_outputs["has_nothing_new"] == False, name="something-new"):  # noqa: E712
                trained = training_job.trained(settings, values | plan_outputs, fixed)
                checkpoints = plan_outputs["checkpoint_directory"]
                scored = evaluate(dataset=dataset, **inputs_of(evaluate, values | plan_outputs)).after(trained)
                evaluated = step(scored, settings.image)
                with_gpus(evaluated, settings.steps)
                with dsl.If(evaluated.outputs["Output"] >= parameters["minimum_score"], name="good-enough"):
                    release(checkpoints, dataset, settings, evaluated=evaluated.outputs, values=values)

    return dsl.pipeline(name=_NAME, display_name="Image training")(graph)


pipeline = image_training(Settings())
"""The only pipeline of this module, for `kfp dsl compile --py pipelines/image_training.py`."""
