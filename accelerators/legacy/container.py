"""What a replica ran - a container, or a package on a runtime version - in Vertex's fields."""

import re
from typing import Any

from accelerators.legacy.report import Report
from accelerators.legacy.runtime_image import IMAGE_PLACEHOLDER, executor_image

MODULE_PLACEHOLDER = "PYTHON_MODULE"
PACKAGE_PLACEHOLDER = "gs://BUCKET/PACKAGE.tar.gz"


class Task:
    """The program of a job: the same for all pools, but for images of their own."""

    def __init__(self, training: dict[str, Any], report: Report) -> None:
        self.training = training
        self.report = report
        self.args = _args(training, report)
        self.image = training.get("masterConfig", {}).get("imageUri") or ""
        self.is_package = not self.image and bool(training.get("pythonModule") or training.get("packageUris"))
        if self.is_package:
            self.packages = _packages(training, report)
            self.module = _module(training, report)
        self._not_carried_over()

    def for_role(self, config: dict[str, Any], *, gpu: bool, role: str) -> dict[str, Any]:
        """Return the container_spec or python_package_spec of a pool."""
        if self.is_package and not config.get("imageUri"):
            return {"python_package_spec": self._package_spec(gpu=gpu)}
        return {"container_spec": self._container_spec(config, role)}

    def _container_spec(self, config: dict[str, Any], role: str) -> dict[str, Any]:
        image = config.get("imageUri") or self.image or IMAGE_PLACEHOLDER
        if image == IMAGE_PLACEHOLDER:
            message = f"none is given: put the address of your image where {IMAGE_PLACEHOLDER} stands"
            self.report.add("decide", "masterConfig.imageUri", message)
        elif re.match(r"(\w+\.)?gcr\.io/", image):
            message = f"{image}: Container Registry addresses are served by Artifact Registry now; check that it pulls"
            self.report.add("doubtful", "imageUri", message)
        spec: dict[str, Any] = {"image_uri": image}
        if config.get("containerCommand"):
            spec["command"] = list(config["containerCommand"])
        args = config.get("containerArgs") or []
        if args and self.training.get("args"):
            message = "args and containerArgs exclude each other; containerArgs was taken, with --job-dir behind it"
            self.report.add("decide", f"{role}Config.containerArgs", message)
        if args:
            spec["args"] = [*args, *_job_dir(self.training, args)]
        elif self.args:
            spec["args"] = list(self.args)
        return spec

    def _package_spec(self, *, gpu: bool) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "executor_image_uri": executor_image(self.training, self.report, gpu=gpu),
            "package_uris": list(self.packages),
            "python_module": self.module,
        }
        if self.args:
            spec["args"] = list(self.args)
        return spec

    def _not_carried_over(self) -> None:
        version = str(self.training.get("pythonVersion") or "")
        if version:
            old = " and no image has it any more" if version.startswith(("2.", "3.5")) else ""
            self.report.add("dropped", "pythonVersion", f"{version} is part of the image now{old}")
        if self.image and self.training.get("runtimeVersion"):
            self.report.add(
                "dropped", "runtimeVersion", "the job has an image of its own; one or the other was allowed"
            )
        if self.image:
            for name in ("packageUris", "pythonModule"):
                if self.training.get(name):
                    self.report.add("dropped", name, "the job runs an image; the program has to be inside it")


def _job_dir(training: dict[str, Any], args: list[str]) -> list[str]:
    folder = training.get("jobDir")
    given = any(arg == "--job-dir" or arg.startswith("--job-dir=") for arg in args)
    return [f"--job-dir={folder}"] if folder and not given else []


def _args(training: dict[str, Any], report: Report) -> list[str]:
    args = list(training.get("args") or [])
    extra = _job_dir(training, args)
    if extra:
        message = "also handed to the program as --job-dir, as AI Platform Training did; Vertex AI does not do that"
        report.add("changed", "jobDir", message)
    return args + extra


def _packages(training: dict[str, Any], report: Report) -> list[str]:
    uris = [uri for uri in training.get("packageUris") or () if uri.startswith("gs://")]
    local = [uri for uri in training.get("packageUris") or () if not uri.startswith("gs://")]
    if local or not uris:
        found = ", ".join(local) or "no package is given"
        message = (
            f"{found}: gcloud built and uploaded it; build a source distribution, copy it to Cloud Storage and "
            f"put its address where {PACKAGE_PLACEHOLDER} stands"
        )
        report.add("decide", "packageUris", message)
        uris.append(PACKAGE_PLACEHOLDER)
    return uris


def _module(training: dict[str, Any], report: Report) -> str:
    module = training.get("pythonModule")
    if not module:
        message = f"none is given: put the module that starts your program where {MODULE_PLACEHOLDER} stands"
        report.add("decide", "pythonModule", message)
    return str(module or MODULE_PLACEHOLDER)
