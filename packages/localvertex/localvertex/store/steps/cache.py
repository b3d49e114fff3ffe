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

from localvertex._base.compiled.spec import Component, Container
from localvertex._base.json_object import JsonObject
from localvertex._base.lines import WriteLine
from localvertex._base.userinput import atomic_write
from localvertex._base.userinput.unique_keys import RepeatedKey, load_json
from localvertex.credentials.secrets import Secrets
from localvertex.store import executor_files, record, registry
from localvertex.store.task import Artifact, Values
from localvertex.values.buckets import Buckets

_DIGEST = "sha256"
"""The field of a record that contains the digest of all other fields."""

_WITHOUT_FILES = "without_files"
"""The field of a record with the addresses of artifacts that had no file when they were kept."""


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
        container: Its container.
        inputs: Its inputs, as its program receives them.
        own_key: The author's key, from `set_caching_options(cache_key=...)`.
        buckets: Where gs:// is.
    """
    parts: JsonObject = {
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
    if container.code:
        parts["code"] = container.code
    if own_key:
        parts = {"pipeline": pipeline_name, "own_key": own_key, "outputs": parts["outputs"]}
    if buckets is not None and buckets.root is not None:
        parts["gcs_root"] = str(buckets.root)
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def look_up(work_dir: Path, key: str, buckets: Buckets, warn: WriteLine) -> Values | None:
    """Return the outputs under a key; None when there are none, or when one of their artifacts is missing.

    An artifact that never had a file, as is usual for metrics, cannot be missing.
    A damaged record counts as missing, and `warn` receives one line about it.
    """
    path = _entry(work_dir, key)
    try:
        content = _read(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        warn(f"the record {path} of the step cache is damaged; the step runs again ({error})")
        return None
    values = Values(parameters=content["parameters"], artifacts=content["artifacts"])
    artifacts = [artifact for each in values.artifacts.values() for artifact in each]
    kept = [each for each in artifacts if each["uri"] not in content.get(_WITHOUT_FILES, ())]
    return values if all(_is_there(work_dir, artifact, buckets) for artifact in kept) else None


def _is_there(work_dir: Path, artifact: Artifact, buckets: Buckets) -> bool:
    """Return whether an artifact still exists: a local path, or a version in the local registry."""
    if artifact["type"].get("schemaTitle") == "google.VertexModel":
        return registry.folder_of(work_dir, str(artifact.get("metadata", {}).get("resourceName", ""))) is not None
    return executor_files.exists(artifact, buckets)


def keep(work_dir: Path, key: str, outputs: Values, origin: str, secrets: Secrets, buckets: Buckets) -> None:
    """Store the outputs of a step that succeeded, unless they contain a secret; `origin` names its run and task."""
    path = _entry(work_dir, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    artifacts = [artifact for each in outputs.artifacts.values() for artifact in each]
    absent = [each["uri"] for each in artifacts if not _is_there(work_dir, each, buckets)]
    content = {"origin": origin, "parameters": outputs.parameters, "artifacts": outputs.artifacts}
    content |= {_WITHOUT_FILES: absent} if absent else {}
    plain = json.loads(json.dumps(content))  # JSON turns all keys into strings
    if secrets.remove(plain) == plain:
        atomic_write.write_text(path, json.dumps(plain | {_DIGEST: _digest(plain)}, indent=1))


def remove_secrets(work_dir: Path, run_id: str, secrets: Secrets) -> None:
    """Remove outputs with secrets that became known after steps of a run were stored."""
    for path in _entry(work_dir, "").parent.glob("*.json"):
        try:
            content = _read(path)
        except (FileNotFoundError, ValueError):
            continue  # removed by another run, or damaged since an earlier one
        if content["origin"].startswith(f"{run_id}/") and secrets.remove(content) != content:
            path.unlink(missing_ok=True)


def _read(path: Path) -> JsonObject:
    """Return the content of a record as it was written.

    Raises:
        OSError: It cannot be read.
        ValueError: It is damaged.
    """
    try:
        if path.stat().st_size > record.MAX_BYTES:
            raise ValueError("it is larger than 2 GiB")
        content: Any = load_json(path.read_bytes())
        digest = content.pop(_DIGEST, "") if isinstance(content, dict) else ""
        if digest and digest == _digest(content):
            return dict(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except RepeatedKey as error:
        raise ValueError(f"it has {error}") from None
    raise ValueError("its content does not match its digest")


def _digest(content: JsonObject) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _entry(work_dir: Path, key: str) -> Path:
    """Return the file of a key."""
    return work_dir / ".localvertex" / "cache" / f"{key}.json"
