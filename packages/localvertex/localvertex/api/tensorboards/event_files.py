"""Scalars in TensorBoard's event files, read without TensorFlow by the package tensorboard."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from localvertex.api.tensorboards.points import Point

_MAX_BYTES = 32 << 20
"""The checksums of a larger file would be computed for more than 10 s."""

_DEFAULT_RUN = "default"
"""The run of files that are not in a sub-folder, as the uploader of the SDK calls it."""

Scalars = dict[str, dict[str, list[Point]]]
"""For each run the points of each tag."""


def scalars(folder: Path, report: Callable[[str], None]) -> Scalars:
    """Return the scalars of a log folder, each of whose sub-folders is a run.

    Args:
        folder: The folder, which may be missing.
        report: Called with each file that cannot be read to its end.

    Raises:
        ImportError: The package tensorboard is not installed.
    """
    found: Scalars = {}
    for path in sorted(folder.rglob("*tfevents*")):
        if not path.is_file():
            continue
        run = found.setdefault(_run_of(path.parent.relative_to(folder)), {})
        for event in _events(path, report):
            for value in event.summary.value:
                number = _number(value)
                if number is not None:
                    run.setdefault(value.tag, []).append(_point(event, number))
    return {run: tags for run, tags in found.items() if tags}


def _events(path: Path, report: Callable[[str], None]) -> Iterator[Any]:
    """Yield the events up to the first that is damaged; the last one may be cut off."""
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.tensorflow_stub import errors
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New

    if path.stat().st_size > _MAX_BYTES:
        report(f"{path} is larger than {_MAX_BYTES} bytes; upload it with aiplatform.upload_tb_log")
        return
    reader = PyRecordReader_New(str(path))
    try:
        while True:
            reader.GetNext()
            yield Event.FromString(reader.record())
    except errors.OutOfRangeError:
        return
    except (errors.DataLossError, DecodeError, OverflowError, MemoryError) as error:
        report(f"{path} is read up to a damaged event: {str(error)[:200]}")


def _number(value: Any) -> float | None:
    """Return a scalar, None for histograms, images and other values."""
    from tensorboard.util.tensor_util import make_ndarray

    if value.HasField("simple_value"):
        return float(value.simple_value)
    if not value.HasField("tensor") or value.tensor.tensor_shape.dim:
        return None
    try:
        return float(make_ndarray(value.tensor))
    except (TypeError, ValueError):
        return None


def _point(event: Any, number: float) -> Point:
    moment = datetime.fromtimestamp(event.wall_time, UTC).isoformat().replace("+00:00", "Z")
    return {"step": str(event.step), "wallTime": moment, "scalar": {"value": number}}


def _run_of(folder: Path) -> str:
    """Return the id of the run of a sub-folder."""
    text = "" if folder == Path() else str(folder)
    return re.sub("[^a-z0-9-]", "-", text.lower()).strip("-")[:128] or _DEFAULT_RUN
