"""The lightweight components without the custom job, which kfp.local refuses.

`python -m tests.e2e.without_the_job compile FILE`, or `... kfp-local FOLDER PARAMETERS...`, which prints the outputs.
"""

import json
import sys
from typing import NamedTuple

from kfp import compiler, dsl, local

from components.container_image import PLACEHOLDER_IMAGE
from components.evaluate import evaluate
from components.export.export import export
from components.plan.plan import plan
from components.prepare.prepare import prepare


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def not_yet() -> float:
    """Return the accuracy of a model that does not exist yet."""
    return -1.0


class Outputs(NamedTuple):
    """Result of the pipeline."""

    accuracy: float
    run_id: str
    is_finished: bool
    worker_pool_specs: list
    restart: bool


@dsl.pipeline(name="without-the-job")
def without_the_job(
    source: str,
    pipeline_root: str,
    exports: bool,
) -> Outputs:
    """Prepare, plan, evaluate and export; the location is a literal because kfp.local resolves no placeholders."""
    data = prepare(source=source, image_size=16, max_examples=300, max_bad_fraction=0.1).outputs["dataset"]
    planned = plan(
        dataset=data,
        image=PLACEHOLDER_IMAGE,
        region="us-central1",
        pipeline_root=pipeline_root,
        model_name="digits",
        model="convnet",
        weights="none",
        trainable="default",
        epochs=2,
        max_steps=0,
        global_batch_size=32,
        learning_rate=0.002,
        learning_rate_schedule="cosine",
        warmup_fraction=0.05,
        optimizer="adam",
        augment="none",
        recipe="",
        shuffle="whole",
        seed=1,
        patience=0,
        minimum_accuracy_gain=0.0,
        metric="accuracy",
        run_label="",
        machine_type="n1-standard-8",
        accelerator_type="NVIDIA_TESLA_T4",
        accelerator_count=2,
        replica_count=2,
        parameter_server_count=0,
        scheduling_strategy="SPOT",
        persistent_resource_id="",
        exact=False,
        minimum_score=0.5,
        force_promotion=False,
        deploy_endpoint="",
        settings={"timeout_seconds": 3600, "serving_image": "example-docker.pkg.dev/serving:1"},
    ).outputs
    # In the first run nothing has been trained, so there is nothing to evaluate.
    with dsl.If(planned["is_finished"] == True):  # noqa: E712 - this builds an expression
        checkpoints = {"checkpoint_directory": planned["checkpoint_directory"]}
        evaluated = evaluate(**checkpoints, dataset=data, minimum_score=0.5).outputs["Output"]
        with dsl.If(exports == True):  # noqa: E712 - this builds an expression
            export(checkpoint_directory=planned["checkpoint_directory"], dataset=data)
    with dsl.Else():
        nothing = not_yet().output
    return Outputs(
        accuracy=dsl.OneOf(evaluated, nothing),
        run_id=planned["run_id"],
        is_finished=planned["is_finished"],
        worker_pool_specs=planned["worker_pool_specs"],
        restart=planned["restart_job_on_worker_restart"],
    )


if __name__ == "__main__":
    if sys.argv[1] == "compile":
        compiler.Compiler().compile(without_the_job, sys.argv[2])
    else:
        folder, source, root, exports = sys.argv[2:]
        local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=folder)
        task = without_the_job(source=source, pipeline_root=root, exports=json.loads(exports))
        print("\nOUTPUTS " + json.dumps(task.outputs))
