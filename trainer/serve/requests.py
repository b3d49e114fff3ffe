"""Prediction requests: {"instances": [{"b64": ...}]} becomes the pixels that `prepare` makes of the image files."""

import base64
import functools
import re
from typing import Any

from starlette.concurrency import run_in_threadpool

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_json
from localvertex._base.userinput.spelling import quote
from trainer.data import images
from trainer.data.images import BadImage, Pixels
from trainer.serve.batches import Decode

_MAX_INSTANCES = 1024
"""Images of a request; a batch prediction job sends 64 by default."""
_FORM = '{"b64": "<base64>"} or {"image_bytes": {"b64": "<base64>"}}'
_OTHER_FORMS = (
    (re.compile(r"data:[\w/+.-]*(;[\w=-]+)*,"), "a data URL; send what follows the comma"),
    (re.compile(r"[\w+/=]+[\r\n\t ][\w+/=\s]*\Z", re.ASCII), "base64 with line breaks or blanks; remove them"),
    (re.compile(r"[\w=-]+\Z", re.ASCII), "web-safe base64 or without its padding; send '+' and '/', and end with '='"),
)
"""Forms that other encoders write, with the advice for each."""
_MAX_PIXELS = 2**26
"""Larger images are refused: decoding one takes up to 16 bytes of memory per pixel."""
_SMALL_BYTES = 2**18
"""Bodies that are read in less than a millisecond."""


class Refused(Exception):
    """The request is not answered with predictions."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


async def parse(body: bytes, image_size: int) -> list[Decode]:
    """Check the body of a request, and return a function per instance.

    It returns the pixels uint8 [image_size, image_size, 3], or raises Refused for a file that is not an image, with the
    index of the instance.

    Raises:
        Refused: The body is not valid.
    """
    # A change of threads takes longer than reading a small body, and a large one would keep the health route waiting.
    files = _files(body) if len(body) <= _SMALL_BYTES else await run_in_threadpool(_files, body)
    return [functools.partial(_pixels, index, file, image_size) for index, file in enumerate(files)]


def _files(body: bytes) -> list[bytes]:
    """Return the image files of a request."""
    try:
        content = parse_json(body, "the body")
    except UserError as error:
        raise Refused(400, str(error)) from None
    _check_keys("the body", content, {"instances", "parameters"})
    if content.get("parameters"):
        raise Refused(400, '"parameters" is not empty; the model has no parameters, leave it out')
    instances = content.get("instances")
    if not isinstance(instances, list) or not 1 <= len(instances) <= _MAX_INSTANCES:
        raise Refused(400, f'"instances" must be a list of 1 to {_MAX_INSTANCES:,} instances, each {_FORM}')
    return [_file(f"instance {index}", instance) for index, instance in enumerate(instances)]


def _file(name: str, instance: Any) -> bytes:
    """Return the image file of an instance."""
    if isinstance(instance, dict) and "image_bytes" in instance:
        _check_keys(name, instance, {"image_bytes"})
        instance = instance["image_bytes"]
    _check_keys(name, instance, {"b64"})
    text = instance.get("b64")
    if not isinstance(text, str) or not text:
        raise Refused(400, f"{name} has no image; expected {_FORM}")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        found = next((what for pattern, what in _OTHER_FORMS if pattern.match(text)), "not valid base64")
        raise Refused(400, f"{name} is {found}; expected {_FORM} with base64 as in RFC 4648, on one line") from None


def _pixels(index: int, data: bytes, image_size: int) -> Pixels:
    try:
        return images.to_pixels(data, image_size, _MAX_PIXELS)
    except BadImage as error:
        raise Refused(400, f"instance {index}: {error}") from None


def _check_keys(name: str, content: Any, known: set[str]) -> None:
    if not isinstance(content, dict):
        keys = " or ".join(sorted(known))
        raise Refused(400, f"{name} must be a JSON object with {keys}, found {type(content).__name__}")
    if unknown := sorted(set(content) - known):
        raise Refused(400, f"{name} has the unknown key {quote(unknown[0])}; expected {' or '.join(sorted(known))}")
