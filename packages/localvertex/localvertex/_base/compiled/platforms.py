"""The second document of a compiled file: settings that only one platform, so far Kubernetes, understands."""

from collections.abc import Iterator
from typing import Any

from localvertex._base.json_object import JsonObject

NO_EFFECT = frozenset(
    "imagePullPolicy nodeSelector tolerations podMetadata imagePullSecret nodeAffinity podAffinity securityContext "
    "enabledSharedMemory activeDeadlineSeconds resourceTtlOnCompletion resourceTtlOnSuccess "
    "resourceTtlOnFailure".split()
)
"""Fields of KubernetesExecutorConfig and PipelineConfig that only change where, and how long, pods run and are kept."""


def refusals(platforms: JsonObject) -> list[str]:
    """Return one reason per setting that changes what a step does."""
    try:
        unknown = [key for key in platforms if key != "platforms"]
        found = list(_settings(platforms))
    except AttributeError:
        return ["the second document of the file is not a platform spec"]
    return [f"{key}: not a platform spec" for key in unknown] + [
        f"{path}: settings of a Kubernetes cluster cannot be honoured locally"
        for path, name, value in found
        if name not in NO_EFFECT and value
    ]


def harmless(platforms: JsonObject) -> list[str]:
    """Return the path of each setting that is ignored because it makes no difference to the results."""
    return [path for path, name, _ in _settings(platforms) if name in NO_EFFECT]


def _settings(platforms: JsonObject) -> Iterator[tuple[str, str, Any]]:
    """Yield path, name and value of each setting.

    Raises:
        AttributeError: It is not a platform spec.
    """
    for platform, config in (platforms.get("platforms") or {}).items():
        path = f"platforms.{platform}"
        for key, value in (config or {}).items():
            if key == "pipelineConfig":
                yield from ((f"{path}.{key}.{name}", name, each) for name, each in (value or {}).items())
            elif key == "deploymentSpec":
                for label, executor in ((value or {}).get("executors") or {}).items():
                    for name, each in (executor or {}).items():
                        yield f"{path}.{key}.executors.{label}.{name}", name, each
            elif key != "platform":
                yield f"{path}.{key}", key, value
