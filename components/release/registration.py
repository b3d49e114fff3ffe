"""The step `record`: set labels, description, evaluation and aliases after the upload, and note the registration."""

import dataclasses
import functools
from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple

from components.compare import promotion
from components.compare.criteria import Criteria
from components.compare.promotion import Against
from components.registry import labels
from components.registry.registry import Registry
from components.release import succession
from exact_resume.checkpoints.result_file import read_result
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import quote
from trainer.command_line import report_errors as report_errors  # a component imports it from here
from trainer.results import outcome

_SCHEMA = "gs://google-cloud-aiplatform/schema/modelevaluation/classification_metrics_1.0.0.yaml"
_EVALUATION = "test split"
"""Display name of the evaluation."""


class Recorded(NamedTuple):
    """The outputs of the step."""

    registered_version: str
    """Resource name of the version, projects/P/locations/R/models/ID@NUMBER."""
    is_promoted: bool
    """Whether it is the champion."""
    deploy_endpoint: str
    """Display name of the endpoint to deploy to; empty for no deployment."""


def record(*, dataset: str, source: str, **options: Any) -> Recorded:
    """Complete the registration of an image classifier; see `complete`.

    Args:
        dataset: The dataset that the run was trained on.
        source: Source of the dataset, read again if a champion has another image size.
        **options: The other arguments of `complete`.
    """
    run = {name: options[name] for name in ("checkpoint_directory", "model_name")}
    return complete(against=functools.partial(promotion.against, dataset=dataset, source=source, **run), **options)


def complete(
    *,
    registered_version: str,
    registered_model: Any = None,
    metrics: Mapping[str, Any],
    confusion_matrix: Mapping[str, Any] | None = None,
    decision: MutableMapping[str, Any],
    is_promoted: bool,
    champion: str,
    against: Against,
    checkpoint_directory: str,
    model_name: str,
    serving_image: str,
    region: str,
    pipeline_root: str,
    deploy_endpoint: str = "",
    **given: Any,
) -> Recorded:
    """Complete the registration of a version, make it the champion, and note it; a second call changes nothing.

    If the champion has changed since `compare`, the models are compared here.

    Args:
        registered_version: Version that an earlier run has uploaded, projects/.../models/ID@VERSION; or empty.
        registered_model: Otherwise the artifact of the upload, whose metadata has the version.
        metrics: Metrics of `evaluate`, by name.
        confusion_matrix: Metadata of kfp's ClassificationMetrics; None for metrics of any name, which no schema has.
        decision: Receives the reason why the version is the champion or not.
        is_promoted: Whether the version is to become the champion.
        champion: Version that it was compared with; empty: there was no champion.
        against: Compares the model with another champion.
        checkpoint_directory: Checkpoint folder of the run.
        model_name: Display name in the registry.
        serving_image: Container image that serves the model, as the pipeline's parameter gives it.
        region: Region of the registry.
        pipeline_root: Folder or gs:// prefix of the run.
        deploy_endpoint: Display name of the endpoint for a promoted model; empty: it is not deployed.
        **given: Fields of `Criteria`, for the comparison with another champion.

    Raises:
        UserError: The registry refuses a change, two models have the name, or no comparison with another champion is
            possible now.
        TrainingError: The registry is not available.
    """
    criteria, registry = Criteria(**given), Registry(region=region, pipeline_root=pipeline_root)
    version = registry.get(registered_version or registered_model.metadata["resourceName"])
    registry.label_version(version.name, _labels_of_run(checkpoint_directory) | _promotion(checkpoint_directory))
    registry.label_model(version.model, dict([labels.PROJECT_LABEL]))
    if confusion_matrix is None:
        registry.describe(version.name, ", ".join(f"{name} {value:g}" for name, value in metrics.items()))
    else:
        registry.describe(version.name, description(metrics))
        # An earlier attempt may have imported it.
        if not registry.evaluations(version.name):
            in_schema = in_google_schema(metrics, confusion_matrix)
            registry.import_evaluation(version.name, in_schema, display_name=_EVALUATION, schema_uri=_SCHEMA)
    # Two first runs at once have made two models, each of which would be a champion.
    registry.find(model_name)

    def wins(other: str) -> bool:
        result = promotion.compete(version, registry.get(other), criteria=criteria, against=against)
        noted = result if result.is_promoted else dataclasses.replace(result, promotion=labels.REFUSED)
        promotion.note(checkpoint_directory, noted, criteria)
        registry.label_version(version.name, {labels.PROMOTION: noted.promotion})
        print(f"{other} has become the champion since the comparison; {promotion.summary(result)}")
        return result.is_promoted

    if is_promoted:
        current = succession.take_over(registry, version.name, compared=champion, wins=wins)
    else:
        found = registry.champion(version.model)
        current = found.name if found else ""
    is_champion = current == version.name
    # Of `compare`, or of the comparison here.
    decision["reason"] = outcome.notes(checkpoint_directory).comparison.get("reason", "")
    if is_champion or not is_promoted:
        outcome.note_registration(
            checkpoint_directory, model_name=model_name, serving_image=serving_image, resource_name=version.name
        )
    print(f"registered as {version.name}; the champion is {current or 'none'}")
    return Recorded(version.name, is_champion, deploy_endpoint if is_champion else "")


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
