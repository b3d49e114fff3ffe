"""Runtime versions of AI Platform Training as prebuilt training images of Vertex AI."""

import re
from typing import Any

from accelerators.legacy.report import Report

IMAGE_PLACEHOLDER = "IMAGE_URI"

# Prebuilt training images: TensorFlow versions with Python 3.7 and, as .py310, with 3.10 (page of 2026-07-15).
_WITHOUT_SUFFIX = {(1, 15), *((2, minor) for minor in (1, 2, 3, 4, 5, 6, 7, 8, 9, 11))}
_PY310 = {(2, minor) for minor in (8, 9, 11, 12, 13, 14, 15, 16, 17)}
_CONTINENTS = {"europe": "europe", "me": "europe", "africa": "europe", "asia": "asia", "australia": "asia"}


def executor_image(training: dict[str, Any], report: Report, *, gpu: bool) -> str:
    """Return the prebuilt image of a job's runtimeVersion, or a placeholder where there is none."""
    version = str(training.get("runtimeVersion") or "")
    parts = re.fullmatch(r"(\d+)\.(\d+)(?:\.\d+)?", version)
    release = (int(parts.group(1)[:3]), int(parts.group(2)[:3])) if parts else (0, 0)
    if release not in _WITHOUT_SUFFIX | _PY310:
        message = (
            f"{version or 'none'}: there is no prebuilt image for it; put one where {IMAGE_PLACEHOLDER} stands, "
            "best a container of your own with your package in it"
        )
        report.add("decide", "runtimeVersion", message)
        return IMAGE_PLACEHOLDER
    continent = _CONTINENTS.get(str(training.get("region", "")).split("-")[0], "us")
    suffix = "" if release in _WITHOUT_SUFFIX else ".py310"
    kind = "gpu" if gpu else "cpu"
    image = f"{continent}-docker.pkg.dev/vertex-ai/training/tf-{kind}.{release[0]}-{release[1]}{suffix}:latest"
    message = f"{version} becomes {image}, which is past its end of availability; prefer a container of your own"
    report.add("doubtful", "runtimeVersion", message)
    return image
