"""The steps `export`, `record` and `deploy` for the model of any training code."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from components.any_code import evidence
from components.any_code.evidence import Prediction
from components.export.exported import Exported, parent_of
from components.registry.registry import Registry
from components.release import deployment, registration
from components.release.live_prediction import (
    MAX_REQUEST_BYTES,
    NUM_INSTANCES,
    TOLERANCE,
    Trial,
    WrongAnswerError,
)
from localvertex_base.userinput.spelling import quote
from trainer.command_line import report_errors as report_errors  # a component imports it from here


def export(
    *,
    checkpoint_directory: str,
    model_directory: str,
    labels: Mapping[str, str],
    serving_image: str,
    model_name: str,
    champion: str,
    region: str,
    pipeline_root: str,
) -> Exported:
    """Give the model its evidence, and check that it still replaces what it was compared with.

    Args:
        checkpoint_directory: Of the run.
        model_directory: What the training code wrote.
        labels: Of the user.
        serving_image: Prediction container image, with its own server.
        model_name: Display name in the Model Registry.
        champion: Version that the model replaces, as `compare` found it; empty for none.
        region: Region of the registry.
        pipeline_root: Folder or gs:// prefix of the run.

    Raises:
        UserError: The champion is another one by now.
    """
    evidence.give_to_model(checkpoint_directory, model_directory)
    return Exported(
        metadata={},
        labels=dict(labels) | registration.labels_at_upload(checkpoint_directory),
        container={"imageUri": serving_image},
        # As late as possible: another run may have registered a model since `compare`.
        parent_model=parent_of(model_name, champion, Registry(region=region, pipeline_root=pipeline_root)),
    )


def record(*, checkpoint_directory: str, **options: Any) -> str:
    """Complete the registration with the metrics; see `registration.record`."""
    figures = evidence.read(checkpoint_directory).figures
    return registration.record(checkpoint_directory=checkpoint_directory, metrics=figures, **options)


def deploy(*, checkpoint_directory: str, **options: Any) -> str:
    """Deploy a version, and try it with the instances in the predictions; see `deployment.put_live`."""

    def trial() -> Trial:
        chosen: list[Prediction] = []
        for each in evidence.read(checkpoint_directory).predictions.values():
            sent = [*(one.instance for one in chosen), each.instance]
            if each.instance is not None and len(json.dumps(sent)) <= MAX_REQUEST_BYTES:
                chosen.append(each)
            if len(chosen) == NUM_INSTANCES:
                break
        return Trial(
            instances=[each.instance for each in chosen],
            check=lambda answers: _largest_difference([each.answer for each in chosen], answers),
            reason=f"it was not tried, because {evidence.PREDICTIONS_FILE} has no instance",
        )

    return deployment.put_live(checkpoint_directory=checkpoint_directory, trial=trial, **options)


def _largest_difference(expected: Any, found: Any) -> float:
    """Return the largest difference of a number in two JSON values.

    Raises:
        WrongAnswerError: A number differs by more than the tolerance, or anything else differs.
    """
    if isinstance(expected, int | float) and isinstance(found, int | float):
        difference = abs(expected - found)
        # Also false for NaN.
        if difference <= TOLERANCE * max(1.0, abs(expected)):
            return float(difference)
    elif isinstance(expected, Mapping) and isinstance(found, Mapping) and expected.keys() == found.keys():
        return max((_largest_difference(each, found[key]) for key, each in expected.items()), default=0.0)
    elif _is_list(expected) and _is_list(found) and len(expected) == len(found):
        return max(map(_largest_difference, expected, found), default=0.0)
    elif expected == found:
        return 0.0
    raise WrongAnswerError(
        f"the endpoint answers {quote(found, 200)}; {evidence.PREDICTIONS_FILE} has {quote(expected)}"
    )


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
