"""References to weights that are not files: run:ID, model:NAME@ALIAS, and sha256:DIGEST, to which both are resolved."""

import os
import re

from exact_resume.files import storage
from localvertex._base.userinput.errors import UserError

RUN, MODEL, RESOLVED = "run:", "model:", "sha256:"
_FORMS = {RUN: r"run:\S.*", MODEL: r"model:[^@]+@[^@\s]+", RESOLVED: r"sha256:[0-9a-f]{64}"}
_EXPECTED = {
    RUN: "run:ID with the id of a finished run, e.g. run:0123456789abcdef",
    MODEL: "model:NAME@ALIAS or model:NAME@VERSION, e.g. model:image-training@1",
    RESOLVED: "sha256: and 64 hexadecimal digits",
}


def is_reference(weights: str) -> bool:
    """Return whether the text names weights that are fitted to the network after it is built."""
    return weights.startswith(tuple(_FORMS))


def check(weights: str) -> None:
    """Refuse a reference of another form.

    Raises:
        UserError: The text after the prefix is not valid.
    """
    kind = next(kind for kind in _FORMS if weights.startswith(kind))
    if not re.fullmatch(_FORMS[kind], weights):
        raise UserError(f"weights={weights!r} is not valid; expected {_EXPECTED[kind]}")


def is_file(weights: str) -> bool:
    """Return whether a value of the field `weights` is a path."""
    return weights.endswith((".h5", ".keras"))


def require(path: str) -> None:
    """Refuse a path without a file.

    Raises:
        UserError: There is no file.
    """
    if not storage.exists(path):
        raise UserError(f"weights file {path!r} not found (current folder: {os.getcwd()}); check the path")
