"""Compiles the pipelines of this folder again: python tests/data/machines/pipelines/build.py [FOLDER]."""

import sys
from pathlib import Path

from google_cloud_pipeline_components.types import artifact_types
from google_cloud_pipeline_components.v1.custom_job import (
    CustomTrainingJobOp,
    create_custom_training_job_from_component,
)
from google_cloud_pipeline_components.v1.model import ModelUploadOp
from kfp import compiler, dsl

IMAGE = "europe-docker.pkg.dev/shop-ml/train/flowers-python:1.4"
PLACEHOLDER = "placeholder/image-training-python:local"
ROOT = "gs://shop-ml-pipelines/root"


def pool(machine_type, accelerator_type=None, accelerator_count=None, replica_count=1):
    machine = {"machine_type": machine_type}
    if accelerator_type is not None:
        machine |= {"accelerator_type": accelerator_type, "accelerator_count": accelerator_count}
    container = {"image_uri": IMAGE, "command": ["python", "-m", "flowers.train"]}
    return {"machine_spec": machine, "replica_count": replica_count, "container_spec": container}


@dsl.pipeline(name="literal-pools", pipeline_root=ROOT)
def literal():
    pools = [pool("n1-standard-8", "NVIDIA_TESLA_V100", 3), pool("n1-standard-8", "NVIDIA_TESLA_V100", 1, 2)]
    CustomTrainingJobOp(display_name="train", worker_pool_specs=pools)


@dsl.pipeline(name="nested-channels")
def nested(
    machine_type: str = "n1-standard-32",
    accelerator_type: str = "NVIDIA_TESLA_V100",
    accelerator_count: int = 2,
    project: str = "shop-ml",
    location: str = "europe-west4",
):
    pools = [pool(machine_type, accelerator_type, accelerator_count)]
    CustomTrainingJobOp(project=project, location=location, display_name="train", worker_pool_specs=pools)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def fit(epochs: int) -> float:
    return float(epochs)


@dsl.pipeline(name="wrapped-job", pipeline_root=ROOT)
def wrapped(epochs: int = 3):
    job = create_custom_training_job_from_component(
        fit,
        display_name="fit",
        machine_type="g2-standard-8",
        accelerator_type="NVIDIA_TESLA_T4",
        accelerator_count=1,
        replica_count=3,
        strategy="SPOT",
    )
    job(epochs=epochs)


@dsl.pipeline(name="gpu-on-launcher", pipeline_root=ROOT)
def launcher():
    train = CustomTrainingJobOp(display_name="train", worker_pool_specs=[pool("n1-standard-8")])
    train.set_accelerator_type("NVIDIA_TESLA_T4").set_accelerator_limit(1).set_cpu_limit("8").set_memory_limit("32G")
    train.set_env_variable("EPOCHS", "3")
    train.set_caching_options(False)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def make_data(out: dsl.Output[dsl.Dataset], rows: int = 3):
    pass


@dsl.pipeline(name="artifact-in-pools", pipeline_root=ROOT)
def artifact():
    pools = [pool("g2-standard-8", "NVIDIA_L4", 1)]
    pools[0]["container_spec"]["args"] = ["--data", make_data().outputs["out"]]
    CustomTrainingJobOp(display_name="train", worker_pool_specs=pools).set_caching_options(False)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def accuracy() -> float:
    return 0.9


@dsl.pipeline(name="train-and-upload", pipeline_root=ROOT)
def upload(location: str = "europe-west4", strategy: str = "FLEX_START"):
    pools = [pool("g2-standard-8", "NVIDIA_L4", 1), pool("g2-standard-12", "NVIDIA_L4", 1, 2)]
    train = CustomTrainingJobOp(
        display_name="train", location=location, strategy=strategy, timeout="864000s", worker_pool_specs=pools
    ).set_caching_options(False)
    measured = accuracy().after(train)
    with dsl.If(measured.output >= 0.8):
        model = dsl.importer(
            artifact_uri="gs://shop-ml/model",
            artifact_class=artifact_types.UnmanagedContainerModel,
            metadata={"containerSpec": {"imageUri": IMAGE}},
        )
        ModelUploadOp(display_name="flowers", unmanaged_container_model=model.output)


@dsl.component(base_image=PLACEHOLDER, install_kfp_package=False)
def plan(machine_type: str, accelerator_type: str, accelerator_count: int, replica_count: int) -> list:
    return []


@dsl.component(base_image=PLACEHOLDER, install_kfp_package=False)
def goodbye(run: str):
    pass


@dsl.pipeline(name="planned")
def planned(
    machine_type: str = "n1-standard-4",
    accelerator_type: str = "NVIDIA_TESLA_T4",
    accelerator_count: int = 1,
    replica_count: int = 1,
    scheduling_strategy: str = "STANDARD",
    run: bool = True,
):
    with dsl.ExitHandler(goodbye(run="x")):
        machines = plan(
            machine_type=machine_type,
            accelerator_type=accelerator_type,
            accelerator_count=accelerator_count,
            replica_count=replica_count,
        )
        with dsl.If(run == True):  # noqa: E712 - this builds an expression
            CustomTrainingJobOp(
                display_name="train",
                worker_pool_specs=machines.output,
                strategy=scheduling_strategy,
                restart_job_on_worker_restart=True,
            ).set_caching_options(False)


POOLS = [pool("a2-highgpu-1g", "NVIDIA_TESLA_A100", 2)]


@dsl.pipeline(name="pools-parameter", pipeline_root=ROOT)
def param(
    worker_pool_specs: list = POOLS,
    region: str = "us-central1",
):
    CustomTrainingJobOp(display_name="train", location=region, worker_pool_specs=worker_pool_specs).set_caching_options(
        False
    )


@dsl.pipeline(name="camel-pools", pipeline_root=ROOT)
def camel():
    pools = [
        {
            "machineSpec": {"machineType": "n1-standard-16"},
            "replicaCount": "1",
            "containerSpec": {"imageUri": "gcr.io/shop-ml/train:latest", "args": ["--epochs", "3"]},
        }
    ]
    CustomTrainingJobOp(project="shop-ml", display_name="train", worker_pool_specs=pools).set_caching_options(False)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def train_here(steps: int):
    pass


@dsl.pipeline(name="plain-steps", pipeline_root=ROOT)
def plain():
    train_here(steps=1).set_accelerator_type("NVIDIA_TESLA_T4").set_accelerator_limit(3)
    train_here(steps=2).set_cpu_limit("128").set_memory_limit("700G")


PIPELINES = {
    "literal": literal,
    "nested": nested,
    "wrapped": wrapped,
    "launcher": launcher,
    "artifact": artifact,
    "upload": upload,
    "planned": planned,
    "param": param,
    "camel": camel,
    "plain": plain,
}


def build(folder: Path) -> None:
    for name, pipeline in PIPELINES.items():
        compiler.Compiler().compile(pipeline, str(folder / f"{name}.json"))
    compiler.Compiler().compile(wrapped, str(folder / "wrapped.yaml"))


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
