"""The steps `export`, `record` and `deploy` for the model of any training code."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from components.any_code import evidence, judging
from components.any_code.request import Goal
from components.export.exported import Exported
from components.registry.registry import Registry
from components.release import deployment, registration
from components.release.live_prediction import NUM_INSTANCES, TOLERANCE, Trial, WrongAnswerError
from components.release.registration import Recorded
from localvertex._base.userinput.spelling import quote
from trainer.command_line import report_errors as report_errors  # a component imports it from here


def export(
    *,
    checkpoint_directory: str,
    base_output_directory: str,
    labels: Mapping[str, str],
    serving_image: str,
    model_name: str,
    region: str,
    pipeline_root: str,
    **_: Any,
) -> Exported:
    """Give the model its evidence.

    Args:
        checkpoint_directory: Checkpoint folder of the run.
        base_output_directory: Output folder of the run, with the model in `model`.
        labels: Labels that the user gave.
        serving_image: Prediction container image, with its own server.
        model_name: Display name in the Model Registry.
        region: Region of the registry.
        pipeline_root: Folder or gs:// prefix of the run.
        **_: The artifacts of the component.
    """
    uri = f"{base_output_directory}/model"
    evidence.give_to_model(checkpoint_directory, uri)
    return Exported(
        metadata={"uri": uri},
        labels=dict(labels) | registration.labels_at_upload(checkpoint_directory),
        container={"imageUri": serving_image},
        parent_model=Registry(region=region, pipeline_root=pipeline_root).find(model_name),
    )


def record(*, checkpoint_directory: str, metric: str, direction: str, **options: Any) -> Recorded:
    """Complete the registration with the metrics; see `registration.complete`."""
    own, goal = evidence.read(checkpoint_directory), Goal(metric=metric, direction=direction)
    return registration.complete(
        checkpoint_directory=checkpoint_directory,
        metrics=own.figures,
        against=functools.partial(judging.against, own=own, goal=goal),
        **options,
    )


def deploy(*, checkpoint_directory: str, **options: Any) -> str:
    """Deploy a version, and try it with the instances in the predictions; see `deployment.put_live`."""
    lines = [each for each in evidence.read(checkpoint_directory).tests.values() if "instance" in each]

    def check(answers: Sequence[Any]) -> float:
        return max(_difference(line["answer"], each) for line, each in zip(lines[:NUM_INSTANCES], answers, strict=True))

    trial = Trial(instances=[each["instance"] for each in lines[:NUM_INSTANCES]], check=check)
    return deployment.put_live(checkpoint_directory=checkpoint_directory, trial=lambda: trial, **options)


def _difference(expected: Any, found: Any) -> float:
    if expected == found:
        return 0.0
    if isinstance(expected, int | float) and isinstance(found, int | float) and abs(expected - found) <= TOLERANCE:
        return float(abs(expected - found))
    raise WrongAnswerError(f"the endpoint answers {quote(found)}; {evidence.PREDICTIONS_FILE} has {quote(expected)}")
