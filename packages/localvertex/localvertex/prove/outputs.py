"""The outputs of a run: the numbers of its logs and event logs, and the arrays, metrics and scalars in its files.

Nothing of a file is ever run: pickles are not loaded. A file that no reader reads is known by its digest alone.
"""

import hashlib
import io
import json
import re
import struct
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from localvertex._base.userinput.regular_files import open_regular
from localvertex.prove.numbers import Point, is_measure, read_log

Observation = dict[str, list[Point]]
"""Points by their names, in the order of the log."""

UNREAD = "sha256 "
"""Begins the value of a file that no reader reads."""

_MAX_BYTES = 512 << 20
"""Limit of a file."""
_NOT_OUTPUTS = re.compile(
    r"(^|[._/-])(tmp|temp|partial|lock|bak|lease|events|aside\S*|exact_resume|__pycache__|(manifest|owner)\.json)([._/-]|$)|\.log$|/log\.txt$|~$"
)
_DIGEST = re.compile(r"[0-9a-f]{16,128}")
_FLOAT = 1
"""DT_FLOAT of tensorflow/core/framework/types.proto."""
_EVENT_KEYS = {"steps": ("first_step", "last_step"), "evaluate": ("step",)}
_Items = Iterable[tuple[Any, ...]]


def observe(
    base: Path, logs: Sequence[Path], patterns: Sequence[re.Pattern[str]], *, started: float = 0.0
) -> Observation:
    """Read a run.

    Args:
        base: The folder of its outputs; the event logs of its replicas are below.
        logs: The log of each replica, whose folder has further outputs.
        patterns: Which lines of the logs have numbers; none: all.
        started: When its last process began: a folder of checkpoints in which it has written nothing is left out.
    """
    found, checkpoints = Observation(), base / "checkpoints"
    points = [point for log in logs for point in read_log(log.stem, lines(log), patterns)]
    points += [point for log in logs for point in _events(checkpoints / "events" / f"{log.stem}.jsonl")]
    for folder in (base, *{log.parent for log in logs}):
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder.parent).as_posix()
            is_output = (
                path.is_file() and not path.is_symlink() and ("tfevents" in name or not _NOT_OUTPUTS.search(name))
            )
            if is_output and not (checkpoints in path.parent.parents and _newest(path.parent) < started):
                points += _of_file(name, path)
    for point in points:
        found.setdefault(point.name, []).append(point)
    return found


def _newest(folder: Path) -> float:
    return max(each.lstat().st_mtime for each in folder.iterdir())


def lines(path: Path) -> list[str]:
    """Return the lines of a log, the last of which may be half of one; none if it does not exist."""
    return _bytes(path).decode(errors="replace").split("\n")


def _bytes(path: Path) -> bytes:
    with suppress(OSError), open_regular(path) as file:
        return bytes(file.read(_MAX_BYTES))
    return b""


def _events(path: Path) -> Iterator[Point]:
    """Yield the values of an event log (docs/events.md): of each range of steps, and of each evaluation."""
    process = -1
    for line in lines(path):
        with suppress(ValueError, KeyError, TypeError):
            event = json.loads(line)
            process += event["event"] == "start"
            key = tuple(float(event[name]) for name in _EVENT_KEYS[event["event"]])
            for name in ("loss", "accuracy", "learning_rate", "score"):
                if isinstance(event.get(name), int | float):
                    source = f"{path.stem}|event {event['event']}|{name}"
                    yield Point(name=source, key=key, process=max(process, 0), value=np.array(float(event[name])))


def _of_file(name: str, path: Path) -> Iterator[Point]:
    content = _bytes(path)
    source, read = name, _READERS.get(path.suffix.lower())
    if "tfevents" in name:
        source, read = f"{name.rpartition('/')[0]}|scalars", _scalars
    # A reader meets whatever a program has written, including half of a file; without its package, it reads none.
    try:
        items = [(each, np.asarray(value), tuple(key)) for each, value, *key in read(content)]  # type: ignore[misc]
    except Exception:
        items = [("", np.asarray(_unread(content)), ())]
    for each, value, key in items:
        if not is_measure(each):
            plain = value if value.dtype.kind in "biufc" else str(value.tolist())
            yield Point(name=f"{source}|{each}", key=key, value=plain)


def _unread(content: bytes) -> str:
    return f"{UNREAD}{hashlib.sha256(content).hexdigest()}"


def _npz(content: bytes) -> _Items:
    loaded = np.load(io.BytesIO(content), allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        yield "", loaded
        return
    for each in loaded.files:
        try:
            yield each, loaded[each]
        except ValueError:
            # An array of objects is a pickle.
            yield each, _unread(content)


def _h5(content: bytes) -> _Items:
    import h5py  # type: ignore[import-untyped]

    names: list[str] = []
    with h5py.File(io.BytesIO(content), "r") as file:
        file.visit(names.append)
        return [(name, file[name][()]) for name in names if hasattr(file[name], "dtype")]


def _keras(content: bytes) -> _Items:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [item for each in archive.namelist() if each.endswith(".h5") for item in _h5(archive.read(each))]


def _safetensors(content: bytes) -> _Items:
    end = 8 + struct.unpack_from("<Q", content)[0]
    for name, about in json.loads(content[8:end]).items():
        if name != "__metadata__":
            # Whole numbers, and types that NumPy lacks, such as BF16, are compared by their bytes.
            kind = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}.get(about["dtype"], "u1")
            first, last = about["data_offsets"]
            yield name, np.frombuffer(content[end + first : end + last], kind)


def _leaves(value: Any, name: str = "") -> _Items:
    """Yield the numbers and digests of JSON; a list of numbers or texts is one value."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        for at, each in enumerate(value):
            yield from _leaves(each, f"{name}.{at}")
    elif isinstance(value, list | int | float) or (isinstance(value, str) and _DIGEST.fullmatch(value)):
        yield name, value


def _scalars(content: bytes) -> _Items:
    """Yield tag, value and step from an event file of TensorBoard."""
    from tensorboard.compat.proto.event_pb2 import Event

    position = 0
    while position + 12 <= len(content):
        size = struct.unpack_from("<Q", content, position)[0]
        if position + size + 16 > len(content):
            # A kill has cut the last event.
            return
        event = Event.FromString(content[position + 12 : position + 12 + size])
        position += size + 16
        for each in event.summary.value:
            # TensorBoard's own reader would import TensorFlow.
            packed = np.frombuffer(each.tensor.tensor_content, "<f4") if each.tensor.dtype == _FLOAT else ()
            values = [*packed, *each.tensor.float_val] if each.HasField("tensor") else [each.simple_value]
            if len(values) == 1:
                yield each.tag, float(values[0]), float(event.step)


_READERS: dict[str, Callable[[bytes], _Items]] = {
    ".npy": _npz,
    ".npz": _npz,
    ".h5": _h5,
    ".hdf5": _h5,
    ".keras": _keras,
    ".safetensors": _safetensors,
    ".json": lambda content: _leaves(json.loads(content)),
    ".txt": lambda content: [("", [float(each) for each in content.split()])],
}
