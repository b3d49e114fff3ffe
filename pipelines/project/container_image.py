"""The container images of the steps: their files, their tag, and their build with Cloud Build."""

import hashlib
from typing import Any

from pipelines.project.gcloud import ROOT, CloudError, Gcloud
from pipelines.project.resources import Names

_UNKNOWN_DIGEST = "sha256:" + "0" * 64
"""The digest that a dry run prints, because only a build has a real one."""


def build(gcloud: Gcloud, names: Names, *, with_beam: bool) -> tuple[str, str]:
    """Build, test and push the container images if one is missing.

    Args:
        gcloud: Runs the commands.
        names: The names of the resources.
        with_beam: Whether the image for CPUs has Apache Beam, for Dataflow.

    Returns:
        The names with the digests: for GPUs, and for the other steps.

    Raises:
        CloudError: The build failed.
    """
    tag = _fingerprint()
    target = "dataflow" if with_beam else "cpu"
    images = {"_IMAGE": "image-training-python", "_CPU_IMAGE": f"image-training-{target}"}
    tagged = {name: f"{names.repository}/{image}:{tag}" for name, image in images.items()}
    found = [_describe(gcloud, each) for each in tagged.values()]
    if None in found:
        given = ",".join(f"{name}={value}" for name, value in (tagged | {"_CPU_TARGET": target}).items())
        flags = (f"--config={ROOT / 'cloudbuild.yaml'}", f"--substitutions={given}", names.in_project)
        gcloud.change("gcloud", "builds", "submit", str(ROOT), *flags)
        found = [_describe(gcloud, each) for each in tagged.values()]
    own, cpu = (_with_digest(gcloud, each, about) for each, about in zip(tagged.values(), found, strict=True))
    return own, cpu


def _describe(gcloud: Gcloud, tagged: str) -> dict[str, Any] | None:
    return gcloud.read("gcloud", "artifacts", "docker", "images", "describe", tagged)


def _with_digest(gcloud: Gcloud, tagged: str, found: dict[str, Any] | None) -> str:
    image = tagged.rpartition(":")[0]
    if found is None and gcloud.dry_run:
        return f"{image}@{_UNKNOWN_DIGEST}"
    if found is None:
        raise CloudError(f"the build did not push {tagged}; see Cloud Build > History in the console")
    summary = found.get("image_summary")
    digest = summary.get("digest") if isinstance(summary, dict) else None
    if not isinstance(digest, str):
        raise CloudError(f"gcloud shows no digest of {tagged}; update gcloud: gcloud components update")
    return f"{image}@{digest}"


def image_files() -> tuple[str, ...]:
    """Return the files and folders of the container images, and the files that decide how they are built."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = (line.removeprefix("!") for line in lines if line.startswith("!"))
    return ("Dockerfile", ".dockerignore", "cloudbuild.yaml", *copied)


def _fingerprint() -> str:
    """Return the tag of the images, 32 hexadecimal digits that depend on their files, so none is built twice."""
    digest = hashlib.sha256()
    for path in sorted(each for name in image_files() for each in [ROOT / name, *(ROOT / name).rglob("*")]):
        if path.is_file() and "__pycache__" not in path.parts:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(ROOT).as_posix()} {content}\n".encode())
    return digest.hexdigest()[:32]
