"""The step `record`: set aliases, labels, description, evaluation and note after the upload."""

from collections.abc import Mapping, Sequence
from typing import Any

from components.registry import labels
from components.registry.registry import Registry, Version
from exact_resume.checkpoints import outcome
from exact_resume.checkpoints.result_file import read_result
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import quote
from trainer.command_line import report_errors as report_errors  # a component imports it from here

_SCHEMA = "gs://google-cloud-aiplatform/schema/modelevaluation/classification_metrics_1.0.0.yaml"
_EVALUATION = "test split"
"""Display name of the evaluation."""


def record(
    *,
    resource_name: str,
    metrics: Mapping[str, Any],
    confusion_matrix: Mapping[str, Any] | None = None,
    is_promoted: bool,
    checkpoint_directory: str,
    model_name: str,
    serving_image: str,
    region: str,
    pipeline_root: str,
) -> str:
    """Complete the registration of a version and note it; a second call changes nothing.

    Args:
        resource_name: Version, projects/.../models/ID@VERSION.
        metrics: Metrics of `evaluate`, by name.
        confusion_matrix: Metadata of kfp's ClassificationMetrics; None for metrics of any name, which no schema has.
        is_promoted: Whether the version becomes the champion.
        checkpoint_directory: Checkpoint folder of the run.
        model_name: Display name in the registry.
        serving_image: Container image that serves the model, as the pipeline's parameter gives it.
        region: Region of the registry.
        pipeline_root: Folder or gs:// prefix of the run.

    Returns:
        Resource name of the version.

    Raises:
        UserError: The registry refuses a change.
        TrainingError: The registry is not available.
    """
    registry = Registry(region=region, pipeline_root=pipeline_root)
    version = registry.get(resource_name)
    registry.label_version(version.name, _labels_of_run(checkpoint_directory) | _promotion(checkpoint_directory))
    registry.label_model(version.model, dict([labels.PROJECT_LABEL]))
    if confusion_matrix is None:
        registry.describe(version.name, ", ".join(f"{name} {value:g}" for name, value in metrics.items()))
    else:
        registry.describe(version.name, description(metrics))
        _evaluate(registry, version, metrics, confusion_matrix)
    champion = _repair_aliases(registry, version, labels.ALIASES if is_promoted else ())
    outcome.note_registration(
        checkpoint_directory, model_name=model_name, serving_image=serving_image, resource_name=version.name
    )
    print(f"registered as {version.name}; the champion is {champion or 'none'}")
    return version.name


def _labels_of_run(checkpoint_directory: str) -> dict[str, str]:
    """Return the labels of the version that the best checkpoint of a finished run becomes.

    Raises:
        UserError: The run is not finished.
    """
    if completion := outcome.completion(checkpoint_directory):
        run_id, data = completion["run_id"], completion["inputs_sha256"]
    elif result := read_result(checkpoint_directory):
        run_id, data = result["run_id"], result["identity"]["dataset_fingerprint"]
    else:
        raise UserError(f"the run in {checkpoint_directory!r} is not finished; run the pipeline again to continue it")
    return {
        labels.RUN_ID: str(run_id),
        labels.CHECKPOINT: labels.label_value(outcome.best_digest(checkpoint_directory)),
        labels.DATASET: labels.label_value(str(data)),
    }


def labels_at_upload(checkpoint_directory: str) -> dict[str, str]:
    """Return the labels to upload a version with; the project's label is repeated on the model by `record`."""
    return dict([labels.PROJECT_LABEL]) | _labels_of_run(checkpoint_directory) | _promotion(checkpoint_directory)


def _promotion(checkpoint_directory: str) -> dict[str, str]:
    """Return the label `promotion` of the version, as `compare` noted it; empty without a comparison."""
    noted = outcome.notes(checkpoint_directory).comparison.get("promotion")
    return {labels.PROMOTION: str(noted)} if noted else {}


def description(metrics: Mapping[str, Any]) -> str:
    """Return the metrics of the test split in one line.

    For example `accuracy 0.9800 (0.1034 by always answering 'three'), loss 0.0712 (180 test images)`.
    """
    # Only the chosen metric has a baseline; the mean recall is shown only if it is chosen.
    has_recall = "baseline_balanced_accuracy" in metrics
    names = ("accuracy", *["balanced_accuracy"] * has_recall, "loss", "macro_f1")
    shown = [_with_baseline(name, metrics) for name in names if name in metrics]
    return f"{', '.join(shown)} ({metrics.get('num_test_examples', 0):g} test images)"


def _with_baseline(name: str, metrics: Mapping[str, Any]) -> str:
    baseline = metrics.get(f"baseline_{name}")
    always = f" ({baseline:.4f} by always answering {quote(metrics['baseline_class'])})" if baseline is not None else ""
    return f"{name} {metrics[name]:.4f}{always}"


def _repair_aliases(registry: Registry, version: Version, aliases: Sequence[str]) -> str:
    """Give the version its aliases, which the upload should have moved, unless a newer one has them.

    Returns:
        The resource name of the champion; empty if there is none.
    """
    versions = registry.versions(version.model)
    holders = {alias: each for each in versions for alias in each.aliases}
    missing = [alias for alias in aliases if alias not in holders or int(holders[alias].number) < int(version.number)]
    if missing:
        print(f"notice: {version.name} did not have {' and '.join(missing)} after the upload")
        registry.merge_aliases(version.name, missing)
    if labels.CHAMPION in missing:
        return version.name
    return holders[labels.CHAMPION].name if labels.CHAMPION in holders else ""


def _evaluate(
    registry: Registry, version: Version, metrics: Mapping[str, Any], confusion_matrix: Mapping[str, Any]
) -> None:
    """Import the evaluation, unless an earlier attempt did."""
    if not registry.evaluations(version.name):
        in_schema = in_google_schema(metrics, confusion_matrix)
        registry.import_evaluation(version.name, in_schema, display_name=_EVALUATION, schema_uri=_SCHEMA)


def in_google_schema(metrics: Mapping[str, Any], confusion_matrix: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of the test split as Google's schema of classification metrics names them.

    Args:
        metrics: Metrics of `evaluate`, by name.
        confusion_matrix: Metadata of kfp's ClassificationMetrics.
    """
    matrix = confusion_matrix.get("confusionMatrix", {})
    names = [spec["displayName"] for spec in matrix.get("annotationSpecs", [])]
    rows = [[int(count) for count in row["row"]] for row in matrix.get("rows", [])]
    specs = [{"id": str(index), "displayName": name} for index, name in enumerate(names)]
    # Each image has one class and one prediction, so precision, recall and F1 over all images are the accuracy.
    accuracy = metrics["accuracy"]
    first = {"confidenceThreshold": 0.0, "maxPredictions": 1}
    first |= dict.fromkeys(("precision", "recall", "f1Score", "accuracy"), accuracy)
    return {
        "logLoss": metrics["loss"],
        "confidenceMetrics": [first],
        "confusionMatrix": {"annotationSpecs": specs, "rows": rows},
    }
