"""Prediction requests: {"instances": [{"b64": ...}], "parameters": {"top_k": ...}} becomes checked image files."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.reading import parse_json
from localvertex_base.userinput.spelling import quote
from trainer.data.modes import BadImage
from trainer.serve import image_files
from trainer.serve.image_files import ImageFile

_MAX_INSTANCES = 1024
"""Images of a request; a batch prediction job sends 64 by default."""
_FORM = '{"b64": "<base64>"} or {"image_bytes": {"b64": "<base64>"}}'


class Refused(Exception):
    """The request is not answered with predictions."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, kw_only=True)
class PredictRequest:
    """The content of a request."""

    images: Sequence[ImageFile]
    top_k: int | None
    """How many classes to answer per image; None for the probabilities of all, in their order."""


def parse(body: bytes) -> PredictRequest:
    """Read and check the body of a request, without decoding an image.

    Raises:
        Refused: The body is not valid, or an instance is not an image file; the reason has its index.
    """
    try:
        content = parse_json(body, "the body")
    except UserError as error:
        raise Refused(400, str(error)) from None
    _check_keys("the body", content, {"instances", "parameters"})
    instances = content.get("instances")
    if not isinstance(instances, list) or not 1 <= len(instances) <= _MAX_INSTANCES:
        raise Refused(400, f'"instances" must be a list of 1 to {_MAX_INSTANCES:,} instances, each {_FORM}')
    images = [_image(f"instance {index}", instance) for index, instance in enumerate(instances)]
    return PredictRequest(images=images, top_k=_top_k(content.get("parameters")))


def _image(name: str, instance: Any) -> ImageFile:
    if isinstance(instance, dict) and "image_bytes" in instance:
        _check_keys(name, instance, {"image_bytes"})
        instance = instance["image_bytes"]
    _check_keys(name, instance, {"b64"})
    text = instance.get("b64")
    if not isinstance(text, str) or not text:
        raise Refused(400, f"{name} has no image; expected {_FORM}")
    try:
        return image_files.check(base64.b64decode(text, validate=True))
    except ValueError:
        raise Refused(400, f"{name} is not valid base64; expected {_FORM}") from None
    except BadImage as error:
        raise Refused(400, f"{name}: {error}") from None


def _top_k(parameters: Any) -> int | None:
    if parameters is None:
        return None
    _check_keys('"parameters"', parameters, {"top_k"})
    value = parameters.get("top_k")
    # The SDK and the console send all numbers as floating-point ones.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is not None and (type(value) is not int or value < 1):
        raise Refused(400, f'"top_k" is {quote(value)}; expected a number of classes from 1')
    return value


def _check_keys(name: str, content: Any, known: set[str]) -> None:
    if not isinstance(content, dict):
        keys = " or ".join(sorted(known))
        raise Refused(400, f"{name} must be a JSON object with {keys}, found {type(content).__name__}")
    if unknown := sorted(set(content) - known):
        raise Refused(400, f"{name} has the unknown key {quote(unknown[0])}; expected {' or '.join(sorted(known))}")
