"""The second document of a compiled file: settings that only one platform, Kubernetes so far, understands."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from compiled.spec import Container, Pipeline

HARMLESS = {
    "imagePullPolicy", "nodeSelector", "tolerations", "podMetadata", "imagePullSecret", "nodeAffinity", "podAffinity",
    "securityContext", "enabledSharedMemory", "resourceTtlOnCompletion", "resourceTtlOnSuccess", "resourceTtlOnFailure",
}  # fmt: skip
"""Fields of KubernetesExecutorConfig and PipelineConfig that change where and how long things live, nothing else."""

TIMEOUT = "activeDeadlineSeconds"
"""Of a step: the one timeout of a task that a compiled file can carry."""


def fields(platforms: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Place, name and value of each setting."""
    for platform, config in (platforms.get("platforms") or {}).items() if isinstance(platforms, dict) else []:
        place = f"platforms.{platform}"
        deployment = config.get("deploymentSpec") if isinstance(config, dict) else None
        for key, value in (config or {}).items() if isinstance(config, dict) else [("", config)]:
            if key == "pipelineConfig" and isinstance(value, dict):
                yield from ((f"{place}.{key}.{name}", name, each) for name, each in value.items())
            elif key not in ("deploymentSpec", "platform"):
                yield f"{place}.{key}", key, value
        for label, executor in ((deployment or {}).get("executors") or {}).items():
            for name, value in (executor or {}).items():
                yield f"{executor_place(place, label)}.{name}", name, value


def executor_place(place: str, label: str) -> str:
    """Where the settings of a step stand."""
    return f"{place}.deploymentSpec.executors.{label}"


def refusals(platforms: dict[str, Any]) -> list[str]:
    """Settings that change what a step does."""
    try:
        unknown = [key for key in platforms if key != "platforms"]
        found = list(fields(platforms))
    except AttributeError:
        return ["the second document of the file is not a platform spec"]
    return [f"{key}: not a platform spec" for key in unknown] + [
        f"{place}: settings of a Kubernetes cluster cannot be honoured here"
        for place, name, value in found
        if name not in HARMLESS and value and not (is_timeout(place, name) and seconds(value))
    ]


def harmless(platforms: dict[str, Any]) -> list[str]:
    """What is ignored because it makes no difference here, for one warning each."""
    return [f"{place} has no effect here" for place, name, _ in fields(platforms) if name in HARMLESS]


def with_timeouts(pipeline: Pipeline) -> Pipeline:
    """The pipeline with the timeouts of its steps put in."""
    places = {place: value for place, name, value in fields(pipeline.platforms) if is_timeout(place, name)}
    executors = dict(pipeline.executors)
    for label, executor in pipeline.executors.items():
        value = seconds(places.get(f"{executor_place('platforms.kubernetes', label)}.{TIMEOUT}"))
        if isinstance(executor, Container) and value:
            executors[label] = replace(executor, timeout_seconds=value)
    return replace(pipeline, executors=executors)


def is_timeout(place: str, name: str) -> bool:
    """Whether a setting is the timeout of a step, not that of the whole pipeline."""
    return name == TIMEOUT and ".deploymentSpec.executors." in place


def seconds(value: Any) -> float | None:
    """A number of seconds; JSON has 64-bit integers as text. None when it is no such number."""
    text = str(value)
    return float(text) if text.isascii() and text.isdigit() and 0 < int(text) <= 10**9 else None
