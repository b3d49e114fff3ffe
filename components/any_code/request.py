"""The training request: lists and mappings as a user gave them, checked before anything costs money."""

import dataclasses
import math
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.any_code.metric_names import DIRECTIONS, MAXIMIZE, Meaning, meaning_of
from components.container_image import check_image
from exact_resume.checkpoints import seal
from exact_resume.files import bucket
from localvertex._base.step_endpoint import IMAGES, is_local_step
from localvertex._base.userinput.doubles import MAX_EXACT
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_json
from localvertex._base.userinput.spelling import join_or, quote
from trainer.checkpoints.identity import check_run_label

_TAG = re.compile(r"(@[\w+.-]+:[0-9a-f]+|:[\w.-]+)$")
_LISTS = ("command", "arguments")
_OF_THE_SERVICE = r"AIP_|CHAMPION_(?:TEST_IDS|MODEL)$|CLOUD_ML_|INPUT_|LOCALVERTEX_|CLUSTER_SPEC$|TF_CONFIG$"
_VARIABLE = f"(?!{_OF_THE_SERVICE})[A-Za-z_][A-Za-z0-9_]*"
_NO_SECRET = r"(?!(?i:.*_)?(?i:token|secret|password|passwd|api_key|credentials?)(_|$))"  # noqa: S105
_MAPPINGS = {
    "inputs": (
        r"[a-z][a-z0-9_]*",
        r"\S+#[\w.:=+/-]+",
        "a name of a-z, 0-9 and _, and ADDRESS#VERSION with a version or checksum that changes with the content",
    ),
    "environment": (
        f"{_NO_SECRET}{_VARIABLE}",
        r"[^\0]*",
        "a variable that the service does not set, and no secret, because parameters are shown: see secrets",
    ),
    "secrets": (
        _VARIABLE,
        r"projects/(?:[a-z0-9.-]+:)?[a-z0-9-]+/secrets/[A-Za-z0-9_-]{1,255}/versions/[0-9]+",
        "a variable, and projects/P/secrets/S/versions/3: not latest, which may change, and not the value",
    ),
    "labels": (
        r"(?!(managed-by|run-id|checkpoint|dataset|promotion)$)[a-z][a-z0-9_-]{0,62}",
        r"[a-z0-9_-]{0,63}",
        "a key that the pipeline does not set; up to 63 of a-z, 0-9, - and _; keys begin with a letter",
    ),
}
"""Patterns of names and values, and what is expected. Values are not shown, because they may be secrets."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Goal:
    """The metric that a model is judged by."""

    metric: str = ""
    direction: str = ""
    """Empty: as the metric's name says."""
    minimum_metric: float = float("nan")
    """The worst accepted value; NaN for any."""

    def __post_init__(self) -> None:
        """Refuse a goal by which no model can be judged.

        Raises:
            UserError: A value is wrong.
        """
        if not self.metric.strip() or not self.metric.isprintable():
            raise UserError(f"metric is {quote(self.metric)}; expected the name of a metric in result.json")
        if self.direction not in ("", *DIRECTIONS):
            raise UserError(f"direction is {quote(self.direction)}; expected {join_or(DIRECTIONS)}")
        known = meaning_of(self.metric)
        if not known and not self.direction:
            way_on = "give --parameter direction=maximize or minimize"
            raise UserError(f"the direction of metric {quote(self.metric)} is not known; {way_on}")
        if known and self.direction not in ("", known.direction):
            raise UserError(
                f"direction is {self.direction}, but {self.metric} is known: {known.direction}; give"
                f" --parameter direction={known.direction}, or the metric another name"
            )
        if math.isinf(self.minimum_metric):
            raise UserError("minimum_metric is infinite; expected a number, or nothing for none")
        if not math.isnan(self.minimum_metric):
            self.check("minimum_metric", self.minimum_metric)

    @property
    def meaning(self) -> Meaning:
        """Return the meaning of the metric; for an unknown name, its direction is the one that the user gave."""
        return meaning_of(self.metric) or Meaning(direction=self.direction, measure="any", is_claim_checked=False)

    def check(self, what: str, value: float) -> float:
        """Return a value of the metric.

        Raises:
            UserError: No model has such a value.
        """
        lowest, highest = self.meaning.lowest, self.meaning.highest
        if not lowest <= value <= highest:
            percent = ", a fraction, not in percent" if highest == 1 < value <= 100 else ""
            raise UserError(f"{what} is {value:g}; expected {lowest:g} to {highest:g}{percent}")
        return value

    def is_better(self, value: float, other: float) -> bool:
        """Return whether one value of the metric is better than another; nothing is better than NaN."""
        return value > other if self.meaning.direction == MAXIMIZE else value < other


def read(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identity of the run, `secrets` and `labels`, by the names of the pipeline's parameters.

    Raises:
        UserError: A value is wrong.
    """
    check_image("image", values["image"])
    check_run_label(values["run_label"])
    found = {name: values[name] for name in ("image", "run_label", *_LISTS, *_MAPPINGS)}
    for name in _LISTS:
        if not isinstance(found[name], list):
            raise UserError(f'{name} is {quote(found[name])}; expected a list of words, e.g. ["python", "train.py"]')
        found[name] = [text(f"{name}[{index}]", each) for index, each in enumerate(found[name])]
    if not found["command"] or not found["command"][0]:
        raise UserError('command is empty; expected a list of words, e.g. ["python", "train.py"]')
    for name, (key_pattern, pattern, expected) in _MAPPINGS.items():
        if not isinstance(found[name], dict):
            raise UserError(f'{name} is not a mapping; expected e.g. {{"name": "value"}}')
        found[name] = {key: text(f"{name}.{key}", each) for key, each in found[name].items()}
        for key, each in found[name].items():
            if not re.fullmatch(key_pattern, key) or not re.fullmatch(pattern, each, re.DOTALL):
                raise UserError(f"{name}.{key} is not valid; expected {expected}")
    if both := sorted(found["environment"].keys() & found["secrets"].keys()):
        raise UserError(f"environment.{both[0]} is in secrets as well; remove one of them")
    return found


def identity(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that decide the result: no secrets and labels; of an image with a digest, the digest alone.

    A local run has no image, so the Python files that the command names, and what stands in for the image, are part.

    Raises:
        UserError: Nothing local identifies the code.
    """
    chosen = {name: value for name, value in request.items() if name not in ("secrets", "labels")}
    image, words = request["image"], request["command"] if is_local_step() else []
    paths = [
        *map(Path, words),
        *(Path(folder, f"{word.replace('.', '/')}.py") for folder in sys.path for word in words),
    ]
    code = [
        path.read_bytes().hex()
        for path in paths
        if path.suffix == ".py" and path.is_absolute() and os.path.isfile(path)
    ]
    files = [*map(seal.digest, code)]
    if words and (known := os.environ.get(IMAGES)):
        digests = parse_json(known, IMAGES)
        untagged = _TAG.sub("", image)
        names = (image, untagged, _TAG.sub("", untagged), "*")
        stand_in = next((digests[name] for name in names if name in digests), "")
        files += [stand_in] * bool(stand_in)
        if not files and not request["run_label"] and "-c" not in words[1:2]:
            raise UserError(
                f"the code of {quote(' '.join(words))} is not known, so that an edited program would count as the same"
                f' run; add --image {image}="env --chdir=FOLDER" with its folder (up to 50 MB of programs), or give a'
                " run_label that changes with the code"
            )
    return chosen | {"image": image.rpartition("@")[2], "files": files}


def check_contents(inputs: Mapping[str, str]) -> None:
    """Refuse objects with another checksum than `#crc32c:...` says; other versions only identify the run.

    Raises:
        UserError: The content has changed, or the object does not exist.
    """
    for name, value in inputs.items():
        address, _, version = value.rpartition("#")
        if not address.startswith("gs://") or not version.startswith("crc32c:"):
            continue
        try:
            found = f"crc32c:{bucket.identity(address)['crc32c']}"
        except FileNotFoundError:
            found = "missing"
        if version != found:
            raise UserError(f"inputs.{name} is {value}, but the object is {found} now; give the version to train with")


def text(name: str, value: Any) -> str:
    """Return a text, or a number as text: within lists and mappings, Vertex AI turns 3 into 3.0.

    Raises:
        UserError: It is something else, or no program can receive it.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_EXACT
    found = str(int(value) if is_number and value == int(value) else value)
    if not is_number and not (
        isinstance(value, str) and value.encode(errors="ignore").decode().replace("\0", "") == value
    ):
        raise UserError(f"{name} is not a text that a program can receive, or a number up to 2**53")
    return found
