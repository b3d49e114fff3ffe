"""Values that a file does not have yet: known only at run time, or a placeholder for the user to fill in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from localvertex._base.json_object import JsonObject

_UNPUSHED = "placeholder/"
"""Prefix of the images that `python compile.py` writes without --image: such a file runs only locally."""

# Real image paths are in lower case (OCI distribution specification, <name>); a tag may have capitals.
_UNFILLED = re.compile(r"[<>{}$%\[\]]|\.\.\.|\bexample\.(?:com|org)\b|(?:^|/)your-(?:project|image|repo|registry)")
_CAPITALS = re.compile(r"[A-Z]")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RuntimeValue:
    """Stands for a value that is only known when the pipeline runs; rules ignore it."""

    origin: str
    """Readable origin, e.g. "parameter 'machine_type', which has no default"."""
    producer: str = ""
    """Path in the file of the step that produces it; empty where no step does."""
    step_inputs: Mapping[str, Any] = field(default_factory=dict)
    """The inputs of that step by name, as far as they are known."""

    def __repr__(self) -> str:
        """Return the origin, because messages quote values that contain it."""
        return f"<{self.origin}>"


def mapping(value: object) -> JsonObject:
    """Return the value if it is a mapping, an empty one otherwise."""
    return value if isinstance(value, dict) else {}


def is_known(value: object) -> bool:
    """Return whether the value is set and not only known at run time."""
    return value is not None and not isinstance(value, RuntimeValue)


def is_placeholder(image: object) -> bool:
    """Return whether this is not an image address yet, such as "gcr.io/PROJECT_ID/train" or "<your image>".

    A value that is not text is not a placeholder: it is missing or only known at run time.
    """
    # "{{$.inputs.parameters['image']}}" is filled in by the pipeline itself.
    if not isinstance(image, str) or not image or "{{$" in image:
        return False
    name = image.split("@", 1)[0]
    head, _, last = name.rpartition("/")
    path = f"{head}/{last.split(':', 1)[0]}"
    return image.startswith(_UNPUSHED) or bool(_UNFILLED.search(name) or _CAPITALS.search(path))
