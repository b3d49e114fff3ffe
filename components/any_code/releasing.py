"""The steps `export`, `record` and `deploy` for the model of any training code."""

from collections.abc import Mapping, Sequence
from typing import Any

from components.any_code import evidence
from components.export.exported import Exported, parent_of
from components.registry.registry import Registry
from components.release import deployment, registration
from components.release.live_prediction import NUM_INSTANCES, TOLERANCE, Trial, WrongAnswerError
from localvertex_base.userinput.spelling import quote
from trainer.command_line import report_errors as report_errors  # a component imports it from here


def export(
    *,
    checkpoint_directory: str,
    base_output_directory: str,
    labels: Mapping[str, str],
    serving_image: str,
    model_name: str,
    champion: str,
    region: str,
    pipeline_root: str,
    **_: Any,
) -> Exported:
    """Give the model its evidence, and check that it still replaces what it was compared with.

    Args:
        checkpoint_directory: Of the run.
        base_output_directory: Of the run, with the model in `model`.
        labels: Of the user.
        serving_image: Prediction container image, with its own server.
        model_name: Display name in the Model Registry.
        champion: Version that the model replaces, as `compare` found it; empty for none.
        region: Region of the registry.
        pipeline_root: Folder or gs:// prefix of the run.
        **_: The artifacts of the component.

    Raises:
        UserError: The champion is another one by now.
    """
    uri = f"{base_output_directory}/model"
    evidence.give_to_model(checkpoint_directory, uri)
    return Exported(
        metadata={"uri": uri},
        labels=dict(labels) | registration.labels_at_upload(checkpoint_directory),
        container={"imageUri": serving_image},
        # As late as possible: another run may have registered a model since `compare`.
        parent_model=parent_of(model_name, champion, Registry(region=region, pipeline_root=pipeline_root)),
    )


def record(*, checkpoint_directory: str, registered_version: str, registered_model: Any = None, **options: Any) -> str:
    """Complete the registration with the metrics; see `registration.record`."""
    return registration.record(
        resource_name=registered_version or registered_model.metadata["resourceName"],
        checkpoint_directory=checkpoint_directory,
        metrics=evidence.read(checkpoint_directory).figures,
        **options,
    )


def deploy(*, checkpoint_directory: str, deploy_endpoint: str, **options: Any) -> str:
    """Deploy a version, and try it with the instances in the predictions; see `deployment.put_live`."""
    lines = [each for each in evidence.read(checkpoint_directory).tests.values() if "instance" in each]

    def check(answers: Sequence[Any]) -> float:
        return max(_difference(line["answer"], each) for line, each in zip(lines[:NUM_INSTANCES], answers, strict=True))

    trial = Trial(instances=[each["instance"] for each in lines[:NUM_INSTANCES]], check=check)
    return deployment.put_live(
        checkpoint_directory=checkpoint_directory,
        trial=lambda: trial,
        endpoint_name=deploy_endpoint,
        **options,
    )


def _difference(expected: Any, found: Any) -> float:
    if expected == found:
        return 0.0
    if isinstance(expected, int | float) and isinstance(found, int | float) and abs(expected - found) <= TOLERANCE:
        return float(abs(expected - found))
    raise WrongAnswerError(f"the endpoint answers {quote(found)}; {evidence.PREDICTIONS_FILE} has {quote(expected)}")
