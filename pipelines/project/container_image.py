"""The container image of the steps: its files, its tag, and its build with Cloud Build."""

import hashlib
from pathlib import Path

from pipelines.project.gcloud import CloudError, Gcloud
from pipelines.project.resources import Names

_ROOT = Path(__file__).resolve().parents[2]
_IMAGE_NAME = "image-training-python"
_UNKNOWN_DIGEST = "sha256:" + "0" * 64
"""The digest that a dry run prints, because only a build has a real one."""


def build(gcloud: Gcloud, names: Names) -> str:
    """Build, test and push the container image if it is missing; return its name with the digest.

    Raises:
        CloudError: The build failed.
    """
    image = f"{names.repository}/{_IMAGE_NAME}"
    tagged = f"{image}:{_fingerprint()}"
    describe = ("gcloud", "artifacts", "docker", "images", "describe", tagged)
    found = gcloud.read(*describe)
    if found is None:
        flags = ("--config=cloudbuild.yaml", f"--substitutions=_IMAGE={tagged}", names.in_project)
        gcloud.change("gcloud", "builds", "submit", ".", *flags)
        found = gcloud.read(*describe)
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
    """Return the files and folders of the container image, and the files that decide how it is built."""
    lines = (_ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = (line.removeprefix("!") for line in lines if line.startswith("!"))
    return ("Dockerfile", ".dockerignore", "cloudbuild.yaml", *copied)


def _fingerprint() -> str:
    """Return 32 hexadecimal digits, the tag of the image, so that the same image is not built twice."""
    digest = hashlib.sha256()
    for path in sorted(each for name in image_files() for each in [_ROOT / name, *(_ROOT / name).rglob("*")]):
        if path.is_file() and "__pycache__" not in path.parts:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(_ROOT).as_posix()} {content}\n".encode())
    return digest.hexdigest()[:32]
