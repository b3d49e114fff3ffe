"""The step cache, with the same key as on Vertex AI.

The key (cloud.google.com/vertex-ai/docs/pipelines/configure-caching): the pipeline's name, the step's inputs (values of
parameters, identities of artifacts), its output definition, and its image, command, arguments and environment.
As there, the content of a folder is not part of it.
"""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from localvertex.credentials.secrets import Secrets
from localvertex.state import executor_files, registry
from localvertex.state.task import Artifact, Values
from localvertex.values.buckets import Buckets
from vertex_gpu_training.compiled.spec import Component, Container
from vertex_gpu_training.userinput import files


def key_of(
    pipeline_name: str,
    component: Component,
    container: Container,
    inputs: Values,
    own_key: str = "",
    buckets: Buckets | None = None,
) -> str:
    """Return the cache key of a step.

    Args:
        pipeline_name: Name of its pipeline.
        component: Its signature.
        container: What it runs.
        inputs: Its inputs, as its program receives them.
        own_key: The author's key, from `set_caching_options(cache_key=...)`.
        buckets: Where gs:// is.
    """
    parts: dict[str, Any] = {
        "pipeline": pipeline_name,
        "parameters": inputs.parameters,
        "artifacts": {name: [each["name"] for each in artifacts] for name, artifacts in inputs.artifacts.items()},
        "outputs": {name: asdict(each) for name, each in component.output_parameters.items()}
        | {name: asdict(each) for name, each in component.output_artifacts.items()},
        "image": container.image,
        "command": container.command,
        "args": container.args,
        "env": container.env,
    }
    if container.replacement:
        parts["replacement"] = container.replacement
    if own_key:
        parts = {"pipeline": pipeline_name, "own_key": own_key, "outputs": parts["outputs"]}
    if buckets is not None and buckets.root is not None:
        parts["gcs_root"] = str(buckets.root)
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def look_up(work_dir: Path, key: str, buckets: Buckets, secrets: Secrets) -> Values | None:
    """Return the outputs under a key; None when there are none, or when an artifact or a secret in them is missing."""
    try:
        content = secrets.restored(json.loads(_entry(work_dir, key).read_text()), key)
        values = Values(parameters=content["parameters"], artifacts=content["artifacts"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    artifacts = [artifact for each in values.artifacts.values() for artifact in each]
    return values if all(_is_there(work_dir, artifact, buckets) for artifact in artifacts) else None


def _is_there(work_dir: Path, artifact: Artifact, buckets: Buckets) -> bool:
    """Return whether an artifact still exists: a local path, or a version in the local registry."""
    if artifact["type"].get("schemaTitle") == "google.VertexModel":
        return registry.folder_of(work_dir, str(artifact.get("metadata", {}).get("resourceName", ""))) is not None
    return executor_files.exists(artifact, buckets)


def keep(work_dir: Path, key: str, outputs: Values, origin: str, secrets: Secrets) -> None:
    """Store the outputs of a step that succeeded, without secrets; `origin` names its run and task."""
    path = _entry(work_dir, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"origin": origin, "parameters": outputs.parameters, "artifacts": outputs.artifacts}
    files.write_text(path, json.dumps(secrets.hashed(content, key), indent=1))


def remove_secrets(work_dir: Path, run_id: str, secrets: Secrets) -> None:
    """Put hashes in place of secrets that became known after steps of a run were stored."""
    for path in _entry(work_dir, "").parent.glob("*.json"):
        content = json.loads(path.read_text())
        if str(content["origin"]).startswith(f"{run_id}/"):
            hashed = secrets.hashed(content, path.stem)
            if hashed != content:
                files.write_text(path, json.dumps(hashed, indent=1))


def _entry(work_dir: Path, key: str) -> Path:
    """Return the file of a key."""
    return work_dir / ".localvertex" / "cache" / f"{key}.json"
