"""Rules about a whole pipeline: locations, images, the pipeline root."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from accelerators.job.finding import Finding
from accelerators.job.placeholder import is_placeholder
from accelerators.pipeline.step import Step
from userinput.spelling import listed


def check_locations(steps: Iterable[Step], region: str) -> list[Finding]:
    """Find Google Cloud components that fall back to their own fixed location, such as ModelUploadOp."""
    cloud = [step for step in steps if step.is_google_cloud]
    elsewhere = [region] if region else sorted({place for step in cloud if (place := _given_location(step))})
    return [finding for step in cloud for finding in _own_location(step, elsewhere)]


def _given_location(step: Step) -> str:
    value = step.inputs["location"].value if "location" in step.given else ""
    return value if isinstance(value, str) and "{{$" not in value else ""


def _own_location(step: Step, elsewhere: list[str]) -> list[Finding]:
    held = step.inputs.get("location")
    if held is None or "location" in step.given or not isinstance(held.value, str) or "{{$" in held.value:
        return []
    if held.value in elsewhere or not held.value:
        return []
    found = f"step {step.name!r} is given no location and takes the component's own, {held.value}"
    advice = "give it the pipeline's location"
    message = f"{found}, while the pipeline is in {listed(elsewhere)}; {advice}"
    if not elsewhere:
        message = f"{found}, wherever the pipeline runs; {advice}"
    return [
        Finding(
            rule="component-location",
            severity="error" if elsewhere else "warning",
            where=f"{step.where}.inputs.parameters",
            message=message,
            alternatives=tuple(f"location={place}" for place in elsewhere[:3]),
        )
    ]


def check_images(steps: Iterable[Step]) -> list[Finding]:
    """Find images that somebody still has to fill in; one finding per image."""
    places: dict[str, list[str]] = defaultdict(list)
    for step in steps:
        image = step.container.get("image")
        if isinstance(image, str) and is_placeholder(image) and step.container_where not in places[image]:
            places[image].append(step.container_where)
    return [
        Finding(
            rule="placeholder-image",
            severity="warning",
            where=f"{where[0]}.image",
            message=(
                f"{image!r} is a placeholder ({len(where)} step{'s' * (len(where) > 1)}); "
                "the file runs on Vertex AI only with the address of a pushed image"
            ),
        )
        for image, where in places.items()
        if image.isprintable()
    ]


def check_root(spec: dict[str, Any], config: dict[str, Any]) -> list[Finding]:
    """Find a pipeline without a place for its outputs."""
    root = config.get("gcsOutputDirectory") or spec.get("defaultPipelineRoot")
    if isinstance(root, str) and root.startswith("gs://") and not is_placeholder(root.removeprefix("gs://")):
        return []
    found = f"the pipeline root is {root!r}" if root else "the file names no pipeline root"
    message = f"{found}; give one when it is submitted, e.g. gs://my-bucket/pipelines, or compile with pipeline_root"
    return [Finding(rule="no-pipeline-root", severity="warning", where="defaultPipelineRoot", message=message)]
