"""The second document of a compiled file: settings that only one platform, so far Kubernetes, understands."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from localvertex_base.compiled.spec import Container, Pipeline

NO_EFFECT = frozenset(
    "imagePullPolicy nodeSelector tolerations podMetadata imagePullSecret nodeAffinity podAffinity securityContext "
    "enabledSharedMemory resourceTtlOnCompletion resourceTtlOnSuccess resourceTtlOnFailure".split()
)
"""Fields of KubernetesExecutorConfig and PipelineConfig that only change where, and how long, pods are kept."""
_TIMEOUT = "activeDeadlineSeconds"
"""Of a step: the only timeout of a task that a compiled file can have."""
_MAX_SECONDS = 10**9


def refusals(platforms: dict[str, Any]) -> list[str]:
    """Return one reason per setting that changes what a step does."""
    try:
        unknown = [key for key in platforms if key != "platforms"]
        found = list(_settings(platforms))
    except AttributeError:
        return ["the second document of the file is not a platform spec"]
    return [f"{key}: not a platform spec" for key in unknown] + [
        f"{path}: settings of a Kubernetes cluster cannot be honoured locally"
        for path, name, value in found
        if name not in NO_EFFECT and value and not (_is_timeout(path, name) and _seconds(value))
    ]


def harmless(platforms: dict[str, Any]) -> list[str]:
    """Return one warning per setting that is ignored because it makes no difference locally."""
    return [f"{path} has no effect locally" for path, name, _ in _settings(platforms) if name in NO_EFFECT]


def without_refusal(platforms: dict[str, Any]) -> list[str]:
    """Return the paths of the settings that `refusals` takes: timeouts, and those without an effect."""
    if refusals(platforms):
        return []
    return [path for path, _, value in _settings(platforms) if value]


def with_timeouts(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with the timeouts of its steps filled in."""
    values = {path: value for path, name, value in _settings(pipeline.platforms) if _is_timeout(path, name)}
    executors = dict(pipeline.executors)
    for label, executor in pipeline.executors.items():
        value = _seconds(values.get(f"{_executor_path('platforms.kubernetes', label)}.{_TIMEOUT}"))
        if isinstance(executor, Container) and value:
            executors[label] = replace(executor, timeout_seconds=value)
    return replace(pipeline, executors=executors)


def _settings(platforms: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield path, name and value of each setting."""
    for platform, config in (platforms.get("platforms") or {}).items() if isinstance(platforms, dict) else []:
        path = f"platforms.{platform}"
        deployment = config.get("deploymentSpec") if isinstance(config, dict) else None
        for key, value in (config or {}).items() if isinstance(config, dict) else [("", config)]:
            if key == "pipelineConfig" and isinstance(value, dict):
                yield from ((f"{path}.{key}.{name}", name, each) for name, each in value.items())
            elif key not in ("deploymentSpec", "platform"):
                yield f"{path}.{key}", key, value
        for label, executor in ((deployment or {}).get("executors") or {}).items():
            for name, value in (executor or {}).items():
                yield f"{_executor_path(path, label)}.{name}", name, value


def _executor_path(path: str, label: str) -> str:
    return f"{path}.deploymentSpec.executors.{label}"


def _is_timeout(path: str, name: str) -> bool:
    """Return whether a setting is the timeout of a step, not of the whole pipeline."""
    return name == _TIMEOUT and ".deploymentSpec.executors." in path


def _seconds(value: Any) -> float | None:
    """Return a number of seconds, which JSON has as text (a 64-bit integer); None for anything else."""
    text = str(value)
    return float(text) if text.isascii() and text.isdigit() and 0 < int(text) <= _MAX_SECONDS else None
