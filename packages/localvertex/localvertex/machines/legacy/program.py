"""The program of a replica, a container or a package on a runtime version, in the fields of Vertex AI."""

import re

from localvertex._base.json_object import JsonObject
from localvertex.machines.legacy.report import Report

_PACKAGE_PLACEHOLDER = "gs://BUCKET/PACKAGE.tar.gz"


def program_of(training: JsonObject, config: JsonObject, report: Report) -> JsonObject:
    """Return the container_spec or python_package_spec of a pool.

    Args:
        training: The trainingInput.
        config: The configuration of the replica, which runs the master's image if it has none.
        report: Gets a remark for everything that is not copied.
    """
    master = training.get("masterConfig", {})
    image = config.get("imageUri") or master.get("imageUri")
    is_package = not image and bool(training.get("pythonModule") or training.get("packageUris"))
    if master.get("imageUri"):
        for name in ("packageUris", "pythonModule", "runtimeVersion"):
            if training.get(name):
                report.add("dropped", name, "the job runs its own image, which has to contain the program")
    if not image:
        found = training.get("runtimeVersion") or "missing"
        message = f"{found}: the images of all runtime versions reached their end; replace IMAGE_URI with your own"
        report.add("decide", "runtimeVersion" if is_package else "masterConfig.imageUri", message)
    elif re.match(r"(\w+\.)?gcr\.io/", image):
        message = f"{image}: Container Registry moved to Artifact Registry; check that the image can be pulled"
        report.add("doubtful", "imageUri", message)
    source = config if config.get("imageUri") else master | config
    args = list(source.get("containerArgs") or training.get("args") or [])
    folder = training.get("jobDir")
    given = any(arg == "--job-dir" or arg.startswith("--job-dir=") for arg in args)
    # All trials of a study would share the folder.
    if folder and not given and not training.get("hyperparameters"):
        args.append(f"--job-dir={folder}")
        message = "also passed to the program as --job-dir, as AI Platform Training did; Vertex AI does not"
        report.add("changed", "jobDir", message)
    if is_package:
        spec: JsonObject = {"executor_image_uri": "IMAGE_URI", **_package(training, report)}
    else:
        spec = {"image_uri": image or "IMAGE_URI"}
        if source.get("containerCommand"):
            spec["command"] = list(source["containerCommand"])
    return {"python_package_spec" if is_package else "container_spec": spec | ({"args": args} if args else {})}


def _package(training: JsonObject, report: Report) -> JsonObject:
    uris = [uri for uri in training.get("packageUris", ()) if uri.startswith("gs://")]
    local = [uri for uri in training.get("packageUris", ()) if not uri.startswith("gs://")]
    if local or not uris:
        message = (
            f"{', '.join(local) or 'missing'}; gcloud built and uploaded it: build a source distribution, copy it to "
            f"Cloud Storage and replace {_PACKAGE_PLACEHOLDER} with its address"
        )
        report.add("decide", "packageUris", message)
        uris.append(_PACKAGE_PLACEHOLDER)
    if not training.get("pythonModule"):
        report.add("decide", "pythonModule", "missing; replace PYTHON_MODULE with the module that starts your program")
    return {"package_uris": uris, "python_module": training.get("pythonModule") or "PYTHON_MODULE"}
