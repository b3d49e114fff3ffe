"""The program of a replica, a container or a package on a runtime version, in the fields of Vertex AI."""

import re
from typing import Any

from accelerators.legacy.fields import ROLES
from accelerators.legacy.report import Report

_IMAGE_PLACEHOLDER = "IMAGE_URI"
_MODULE_PLACEHOLDER = "PYTHON_MODULE"
_PACKAGE_PLACEHOLDER = "gs://BUCKET/PACKAGE.tar.gz"

# Prebuilt training images: TensorFlow versions with Python 3.7 and, as .py310, with 3.10 (page of 2026-07-15).
_WITHOUT_SUFFIX = {(1, 15), *((2, minor) for minor in (1, 2, 3, 4, 5, 6, 7, 8, 9, 11))}
_PY310 = {(2, minor) for minor in (8, 9, 11, 12, 13, 14, 15, 16, 17)}
_CONTINENTS = {"europe": "europe", "me": "europe", "africa": "europe", "asia": "asia", "australia": "asia"}


class Task:
    """The program of a job, which all pools share unless they have their own image."""

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
        image = config.get("imageUri") or self.image or _IMAGE_PLACEHOLDER
        if image == _IMAGE_PLACEHOLDER:
            message = f"missing; replace {_IMAGE_PLACEHOLDER} with your container image"
            self.report.add("decide", "masterConfig.imageUri", message)
        elif re.match(r"(\w+\.)?gcr\.io/", image):
            message = f"{image}: Container Registry moved to Artifact Registry; check that the image can be pulled"
            self.report.add("doubtful", "imageUri", message)
        spec: dict[str, Any] = {"image_uri": image}
        if config.get("containerCommand"):
            spec["command"] = list(config["containerCommand"])
        args = config.get("containerArgs") or []
        if args and self.training.get("args"):
            message = "args and containerArgs exclude each other; containerArgs was used"
            self.report.add("decide", f"{role}Config.containerArgs", message)
        if args:
            spec["args"] = [*args, *_job_dir(self.training, args)]
        elif self.args:
            spec["args"] = list(self.args)
        return spec

    def _package_spec(self, *, gpu: bool) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "executor_image_uri": _executor_image(self.training, self.report, gpu=gpu),
            "package_uris": list(self.packages),
            "python_module": self.module,
        }
        if self.args:
            spec["args"] = list(self.args)
        return spec

    def _not_carried_over(self) -> None:
        version = str(self.training.get("pythonVersion") or "")
        if version:
            old = f", and no image has {version} anymore" if version.startswith(("2.", "3.5")) else ""
            self.report.add("dropped", "pythonVersion", f"the image determines the Python version now{old}")
        if self.image and self.training.get("runtimeVersion"):
            self.report.add("dropped", "runtimeVersion", "the job has its own image; only one of the two was allowed")
        if self.image:
            for name in ("packageUris", "pythonModule"):
                if self.training.get(name):
                    self.report.add("dropped", name, "the job runs its own image, which has to contain the program")


def _job_dir(training: dict[str, Any], args: list[str]) -> list[str]:
    """Return the argument that AI Platform Training added by itself.

    For tuning jobs it ended in the number of the trial, which no constant argument can.
    """
    folder = training.get("jobDir")
    left_out = training.get("hyperparameters") or _has_job_dir(args)
    return [f"--job-dir={folder}"] if folder and not left_out else []


def _has_job_dir(args: list[str]) -> bool:
    return any(arg == "--job-dir" or arg.startswith("--job-dir=") for arg in args)


def _args(training: dict[str, Any], report: Report) -> list[str]:
    args = list(training.get("args") or [])
    if training.get("hyperparameters"):
        _folders_of_trials(training, args, report)
    extra = _job_dir(training, args)
    if extra:
        message = "also passed to the program as --job-dir, as AI Platform Training did; Vertex AI does not"
        report.add("changed", "jobDir", message)
    return args + extra


def _folders_of_trials(training: dict[str, Any], args: list[str], report: Report) -> None:
    """Add what the program of a tuning job has to read instead of --job-dir and TF_CONFIG."""
    containers = [config.get("containerArgs") or [] for role in ROLES if (config := training.get(f"{role}Config"))]
    if any(map(_has_job_dir, [args, *containers])):
        message = "every trial gets this same folder and overwrites the others' checkpoints; remove the argument and"
    elif training.get("jobDir"):
        message = "--job-dir is left out: every trial would get the same folder;"
    else:
        message = ""
    if message:
        report.add(
            "decide",
            "jobDir",
            f"{message} let the program read AIP_MODEL_DIR and AIP_CHECKPOINT_DIR, which Vertex AI sets for each trial",
        )
    report.add(
        "doubtful",
        "TF_CONFIG",
        "it no longer contains the trial; a program that takes the trial from it has to read CLOUD_ML_TRIAL_ID",
    )


def _packages(training: dict[str, Any], report: Report) -> list[str]:
    uris = [uri for uri in training.get("packageUris") or () if uri.startswith("gs://")]
    local = [uri for uri in training.get("packageUris") or () if not uri.startswith("gs://")]
    if local or not uris:
        found = ", ".join(local) or "missing"
        message = (
            f"{found}; gcloud built and uploaded it: build a source distribution, copy it to Cloud Storage and "
            f"replace {_PACKAGE_PLACEHOLDER} with its address"
        )
        report.add("decide", "packageUris", message)
        uris.append(_PACKAGE_PLACEHOLDER)
    return uris


def _module(training: dict[str, Any], report: Report) -> str:
    module = training.get("pythonModule")
    if not module:
        message = f"missing; replace {_MODULE_PLACEHOLDER} with the module that starts your program"
        report.add("decide", "pythonModule", message)
    return str(module or _MODULE_PLACEHOLDER)


def _executor_image(training: dict[str, Any], report: Report, *, gpu: bool) -> str:
    """Return the prebuilt image for the runtimeVersion of a job, or a placeholder if there is none."""
    version = str(training.get("runtimeVersion") or "")
    parts = re.fullmatch(r"(\d+)\.(\d+)(?:\.\d+)?", version)
    release = (int(parts.group(1)[:3]), int(parts.group(2)[:3])) if parts else (0, 0)
    if release not in _WITHOUT_SUFFIX | _PY310:
        found = f"{version} has no prebuilt image" if version else "missing"
        message = f"{found}; replace {_IMAGE_PLACEHOLDER} with an image, preferably your own with your package"
        report.add("decide", "runtimeVersion", message)
        return _IMAGE_PLACEHOLDER
    continent = _CONTINENTS.get(str(training.get("region", "")).split("-")[0], "us")
    suffix = "" if release in _WITHOUT_SUFFIX else ".py310"
    kind = "gpu" if gpu else "cpu"
    image = f"{continent}-docker.pkg.dev/vertex-ai/training/tf-{kind}.{release[0]}-{release[1]}{suffix}:latest"
    message = f"{version} becomes {image}, which is past its end of availability; prefer your own container image"
    report.add("doubtful", "runtimeVersion", message)
    return image
