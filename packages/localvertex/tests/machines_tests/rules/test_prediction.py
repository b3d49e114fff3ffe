"""The machines of deployed models and batch predictions, which are not those of custom training."""

import csv
from pathlib import Path
from typing import Any

import pytest
from machines_tests.conftest import ROOT, TODAY

from localvertex.machines import check_deployment, check_pipeline, load_catalogue


def resources(machine: str, gpu: str = "", count: int = 0, **replicas: int) -> dict[str, Any]:
    spec: dict[str, Any] = {"machine_type": machine}
    spec |= {"accelerator_type": gpu, "accelerator_count": count} if gpu or count else {}
    return {"machine_spec": spec, "min_replica_count": 1, "max_replica_count": 1} | replicas


def rules(given: dict[str, Any], region: str = "") -> list[str]:
    return [each.rule for each in check_deployment(given, region=region, today=TODAY)]


@pytest.mark.parametrize(
    ("given", "region"),
    [
        # Smaller and other machines than custom training has.
        (resources("n1-standard-2"), "us-central1"),
        (resources("n1-standard-2", "NVIDIA_TESLA_T4", 4), "europe-west4"),
        (resources("n2d-highcpu-224"), "us-central1"),
        (resources("a3-edgegpu-8g", "NVIDIA_H100_80GB", 8), ""),
        (resources("ct5lp-hightpu-4t"), ""),
        (resources("g2-standard-8", "NVIDIA_L4", 1, max_replica_count=5), "us-central1"),
        (resources("a4x-highgpu-4g", "NVIDIA_GB200", 4, min_replica_count=18, max_replica_count=18), ""),
    ],
)
def test_what_the_service_offers_passes(given: dict[str, Any], region: str) -> None:
    assert [rule for rule in rules(given, region) if rule != "arm-image"] == []


@pytest.mark.parametrize(
    ("given", "region", "rule"),
    [
        (resources("n1-standard-64"), "", "machine-type"),
        (resources("a2-highgpu-1g"), "", "accelerator-required"),
        (resources("n1-standard-2", "NVIDIA_TESLA_T4", 3), "", "accelerator-count"),
        (resources("n1-standard-2", "NVIDIA_L4", 1), "", "accelerator-machine"),
        (resources("n1-standard-2", "NVIDIA_TESLA_T4"), "", "accelerator-pair"),
        (resources("n1-standard-2", "T4", 1), "", "accelerator-type"),
        (resources("g2-standard-8", "NVIDIA_L4", 1), "us-central2", "region"),
        # Only for training there.
        (resources("a4-highgpu-8g", "NVIDIA_B200", 8), "us-east1", "accelerator-region"),
        (resources("n1-standard-2", min_replica_count=0), "", "replica-count"),
        (resources("n1-standard-2", min_replica_count=2), "", "replica-count"),
        (resources("a4x-highgpu-4g", "NVIDIA_GB200", 4), "", "replica-count"),
        (resources("n1-standard-2") | {"replica_count": 1}, "", "unknown-field"),
    ],
)
def test_what_the_service_refuses_is_found(given: dict[str, Any], region: str, rule: str) -> None:
    assert rule in rules(given, region)


def test_an_accelerator_that_is_not_for_training_in_a_region_may_serve_there() -> None:
    catalogue = load_catalogue()
    here = [key for key, entry in catalogue.regions.items() if entry.marker == "†"]
    assert here
    for key in here:
        assert catalogue.regions[key].training == "no"
        assert catalogue.for_prediction.regions[key].training == "yes"


def test_the_tables_fit_together() -> None:
    catalogue = load_catalogue()
    assert len(catalogue.prediction_machines) == 155
    assert {machine for machine, _ in catalogue.prediction_counts} <= set(catalogue.prediction_machines)
    assert {accelerator for _, accelerator in catalogue.prediction_counts} <= set(catalogue.accelerators)
    for name, machine in catalogue.prediction_machines.items():
        carried = catalogue.for_prediction.accelerators_of(name)
        assert bool(carried) is (machine.kind in ("gpu-only", "gpu-optional")), name
    with (ROOT / "localvertex/machines/catalogue/data/prediction_machine_types.csv").open(newline="") as file:
        assert all(row["source_date"] for row in csv.DictReader(file))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline of Google's operations with three wrong machines."""
    from google_cloud_pipeline_components.types.artifact_types import VertexModel
    from google_cloud_pipeline_components.v1.batch_predict_job import ModelBatchPredictOp
    from google_cloud_pipeline_components.v1.endpoint import EndpointCreateOp, ModelDeployOp
    from kfp import compiler, dsl

    @dsl.pipeline(name="deploys")
    def deploys(machine: str = "n1-standard-3") -> None:
        model = dsl.importer(artifact_uri="gs://b/m", artifact_class=VertexModel, metadata={"resourceName": "m"})
        endpoint = EndpointCreateOp(display_name="live", location="europe-west4").outputs["endpoint"]
        ModelDeployOp(
            model=model.output,
            endpoint=endpoint,
            dedicated_resources_machine_type=machine,
            dedicated_resources_min_replica_count=1,
        )
        # Without a machine type, the service chooses.
        ModelDeployOp(model=model.output, endpoint=endpoint, automatic_resources_min_replica_count=1)
        for machine_type in ("n1-standard-64", "n1-standard-2"):
            ModelBatchPredictOp(
                job_display_name="predict",
                model=model.output,
                location="us-central1",
                gcs_source_uris=["gs://b/i"],
                machine_type=machine_type,
                accelerator_type="NVIDIA_TESLA_T4",
                accelerator_count=1,
            )

    path = tmp_path_factory.mktemp("compiled") / "deploys.yaml"
    compiler.Compiler().compile(deploys, str(path))
    return path


def test_deployments_and_batch_predictions_of_compiled_files_are_checked(compiled: Path) -> None:
    import yaml

    spec = yaml.safe_load(compiled.read_text())
    found = check_pipeline(spec, region="europe-west4", today=TODAY)
    assert sorted(each.path for each in found if each.rule == "machine-type") == [
        "root.dag.tasks.model-batch-predict.inputs.parameters.machine_type.runtimeValue.constant",
        "root.inputDefinitions.parameters.machine.defaultValue",
    ]
    parameters = spec["root"]["inputDefinitions"]["parameters"]
    del parameters["machine"]["defaultValue"]
    found = check_pipeline(spec, region="europe-west4", today=TODAY)
    (unknown,) = [each for each in found if each.rule == "not-checked"]
    assert unknown.message.startswith("machine_type of step 'model-deploy': parameter 'machine', which has no default")
