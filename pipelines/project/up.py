"""`python cloud.py up`: creates and marks missing resources, builds the image and compiles the pipeline."""

import hashlib
import shlex
import sys
from pathlib import Path
from typing import Any

from components.container_image import PLACEHOLDER_IMAGE
from components.train.machines import check
from localvertex.machines import load_catalogue
from localvertex.machines.commands.options import known_region
from pipelines.project import roles
from pipelines.project.gcloud import ROOT, CloudError, Gcloud, field
from pipelines.project.resources import (
    ForeignBucket,
    Names,
    Resource,
    account,
    bucket,
    find_bucket,
    is_marked,
    repository,
)
from pipelines.settings import Settings, read_settings
from pipelines.steps import check_steps

_APIS = ("aiplatform", "artifactregistry", "cloudbuild", "iam", "storage")
_APIS_OF_DATAFLOW = ("compute", "dataflow")


_UNKNOWN_DIGEST = "sha256:" + "0" * 64
"""The digest that a dry run prints, because only a build has a real one."""


def up(gcloud: Gcloud, names: Names, settings_file: Path | None = None, *, with_dataflow: bool = False) -> None:
    """Create what is missing, build the container images, and compile the pipeline for them.

    Args:
        gcloud: Runs the commands.
        names: The names of the resources.
        settings_file: Settings of the compilation, whose machines are checked first; None for the defaults.
        with_dataflow: Also enable Dataflow, let the service account start and run its jobs, and build the image for
            CPUs with Apache Beam.

    Raises:
        UserError: The region is unknown, or does not offer the machines.
        CloudError: A command failed, or the bucket cannot be used.
    """
    known_region(load_catalogue(), names.region)
    settings = Settings(region=names.region, **read_settings(settings_file))
    check(settings.machines, image=PLACEHOLDER_IMAGE, region=names.region)
    check_steps(settings.steps, image=PLACEHOLDER_IMAGE, region=names.region)
    found = _usable_bucket(gcloud, names)
    _enable_apis(gcloud, names, (*_APIS, *_APIS_OF_DATAFLOW) if with_dataflow else _APIS)
    _ensure(gcloud, bucket(names), found)
    for resource in (repository(names), account(names)):
        _ensure(gcloud, resource, resource.find(gcloud))
    for on in (roles.on_project, roles.on_bucket, roles.on_repository, roles.on_account):
        _give_roles(gcloud, names, on(names))
    if with_dataflow:
        _give_roles(gcloud, names, roles.on_project_for_dataflow(names))
    image, cpu_image = _build_images(gcloud, names, with_beam=with_dataflow)
    compile_flags = ["--image", image, "--cpu-image", cpu_image, "--region", names.region]
    compile_flags += ["--output-dir", str(ROOT / "build")]
    compile_flags += ["--settings", str(settings_file.resolve())] if settings_file else []
    gcloud.change(sys.executable, str(ROOT / "compile.py"), *compile_flags)
    flags = f"--project={names.project} --region={names.region} --pipeline-root={names.bucket}/pipelines"
    enter = "" if Path.cwd() == ROOT else f"{shlex.join(['cd', str(ROOT)])} && "
    print(f"Ready. Next:\n  {enter}python -m pipelines submit {flags} --service-account={names.account}")


def _usable_bucket(gcloud: Gcloud, names: Names) -> dict[str, Any] | None:
    """Return gcloud's description of the bucket; None if it does not exist."""
    try:
        found = find_bucket(gcloud, names)
    except ForeignBucket as error:
        raise CloudError(f"{error}; give another --name") from None
    if found is not None and (location := field(found, "location", names.bucket)).lower() != names.region:
        # Otherwise every read of a job would cross regions.
        raise CloudError(f"{names.bucket} is in {location}, not in {names.region}; give another --name or --region")
    return found


def _enable_apis(gcloud: Gcloud, names: Names, apis: tuple[str, ...]) -> None:
    listed = gcloud.read_list("gcloud", "services", "list", "--enabled", names.in_project)
    enabled = {field(each.get("config"), "name", "an enabled API") for each in listed if isinstance(each, dict)}
    missing = [name for api in apis if (name := f"{api}.googleapis.com") not in enabled]
    if missing:
        gcloud.change("gcloud", "services", "enable", *missing, names.in_project)


def _ensure(gcloud: Gcloud, resource: Resource, found: dict[str, Any] | None) -> None:
    if found is None:
        for command in resource.create:
            gcloud.change(*command)
    elif not is_marked(found):
        print(f"note: {resource.title} exists without the mark of `cloud.py up`, so `down` keeps it.")
        print(f"  If an earlier `up` created it, mark it: {shlex.join(resource.adopt)}", flush=True)


def _give_roles(gcloud: Gcloud, names: Names, grant: roles.Grant) -> None:
    held = grant.held_roles(gcloud, names)
    for role in grant.roles:
        if role not in held:
            gcloud.change(*grant.change("add", role, names))


def _build_images(gcloud: Gcloud, names: Names, *, with_beam: bool) -> tuple[str, str]:
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
