"""Programs of Google's that create resources in Google Cloud, recognised in a command by their Python module."""

import re
from collections.abc import Iterable

_PACKAGE = "google_cloud_pipeline_components"
_MODULE = re.compile(rf"{_PACKAGE}(?:[./]container\b[\w./]*|\s+import\s+container\b)")
_GOOGLE_IMAGE = re.compile(
    r"(?:[a-z]+\.)?gcr\.io/ml-pipeline/(?:(?:llm-)?model-evaluation|automl-tables-private)\b"
    r"|[a-z]+-docker\.pkg\.dev/vertex-ai/(?:automl-tabular|time-series-forecasting)/"
)
"""Images that contain the programs of Google's own operations (google-cloud-pipeline-components 2.22)."""


def launcher_module(words: Iterable[str]) -> str:
    """Return the first launcher that a command, or the source code in it, mentions; empty when there is none.

    Args:
        words: The command and its arguments.

    Returns:
        The module below `google_cloud_pipeline_components`, e.g. `container.v1.bigquery.query_job.launcher`.
    """
    for word in words:
        # A quick test first: words may be long.
        if _PACKAGE in word and (match := _MODULE.search(word)):
            module = re.split(r"[./\s]", match[0].removesuffix(".py"))
            return ".".join(part for part in module[1:] if part not in ("", "import"))
    return ""


def launcher_of(command: Iterable[str], arguments: Iterable[str]) -> str:
    """Return the launcher that a command with its placeholders resolved starts; empty when there is none.

    Arguments count only when they can be a module or a path: a longer text may be data, such as a compiled pipeline.
    """
    return launcher_module((*command, *(word for word in arguments if len(word) < 200 and not set(word) & set(" \n{"))))


def is_google_image(image: str) -> bool:
    """Return whether a container image is one of those that Google's operations run in."""
    return _GOOGLE_IMAGE.match(image) is not None
