"""What is trained: lists and mappings as a user gave them, checked before anything costs money."""

import dataclasses
import itertools
import math
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.any_code import secret_variables
from components.container_image import check_image
from components.names import check_names
from components.registry.labels import PROJECT_LABEL, VERSION_KEYS
from components.summary.webhook import SECRET
from exact_resume.checkpoints import seal
from localvertex_base.userinput.doubles import MAX_EXACT
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import join_or, quote
from localvertex_base.userinput.step_endpoint import is_local_step
from trainer.checkpoints.identity import check_run_label

DIRECTIONS = ("maximize", "minimize")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = re.compile(r"AIP_.*|CLOUD_ML_.*|INPUT_.*|LOCALVERTEX_.*|CLUSTER_SPEC|TF_CONFIG")
"""Variables of the service, of this pipeline and of localvertex."""
_INPUT_NAME = re.compile(r"[a-z][a-z0-9_]*")
_INPUT = re.compile(r"(\S+)#([\w.:=+/-]+)")
_LABEL_KEY, _LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}"), re.compile(r"[a-z0-9_-]{0,63}")
_SECRET_WORDS = frozenset(("TOKEN", "SECRET", "PASSWORD", "PASSWD"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Goal:
    """The metric that a model is judged by."""

    metric: str
    direction: str = DIRECTIONS[0]
    minimum_metric: float | None = None
    """The worst accepted value, in the direction; None for any."""

    def __post_init__(self) -> None:
        """Refuse a goal by which no model can be judged.

        Raises:
            UserError: A value is wrong.
        """
        if not self.metric.strip() or not self.metric.isprintable():
            raise UserError(f"metric is {quote(self.metric)}; expected the name of a metric in result.json")
        if self.direction not in DIRECTIONS:
            raise UserError(f"direction is {quote(self.direction)}; expected {join_or(DIRECTIONS)}")
        if self.minimum_metric is not None and not math.isfinite(self.minimum_metric):
            raise UserError(f"minimum_metric is {self.minimum_metric}; expected a finite number, or nothing for none")

    def is_good_enough(self, value: float) -> bool:
        """Return whether a value of the metric reaches `minimum_metric`."""
        return self.minimum_metric is None or not self.is_better(self.minimum_metric, value)

    def is_better(self, value: float, other: float) -> bool:
        """Return whether a value of the metric is better than another one."""
        return value > other if self.direction == DIRECTIONS[0] else value < other


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """Training code, and what it receives."""

    image: str
    command: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    inputs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Name -> ADDRESS#VERSION."""
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    secrets: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Variable -> projects/P/secrets/S/versions/N."""
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    run_label: str = ""

    def __post_init__(self) -> None:
        """Refuse what the job, or a step after it, would refuse.

        Raises:
            UserError: A value is wrong; the message names it, and never shows what may be a secret.
        """
        check_image("image", self.image)
        if not self.command or not self.command[0]:
            raise UserError('command is empty; expected a list of words, e.g. ["python", "train.py"]')
        for name, address in self.inputs.items():
            if not _INPUT_NAME.fullmatch(name) or not _INPUT.fullmatch(address):
                raise UserError(
                    f"inputs.{name} is {quote(address)}; expected a name of a-z, 0-9 and _, and ADDRESS#VERSION with a"
                    " version or checksum that changes with the content, e.g. gs://bucket/train.csv#1712345678"
                )
        for field in ("environment", "secrets"):
            for name in getattr(self, field):
                if not _VARIABLE.fullmatch(name) or _RESERVED.fullmatch(name):
                    raise UserError(f"{field}.{name} cannot be set; expected a variable that the service does not set")
        for name in self.environment:
            if name in self.secrets:
                raise UserError(f"environment.{name} is in secrets, too; remove one of them")
            if not _SECRET_WORDS.isdisjoint(name.upper().split("_")):
                raise UserError(
                    f"environment.{name} looks like a secret, and parameters are shown; put it into Secret Manager, and"
                    " the name of its version into secrets"
                )
        for name, version in self.secrets.items():
            if not (found := SECRET.fullmatch(version)) or not (found[2] or "").isdecimal():
                raise UserError(
                    f"secrets.{name} is not the name of a version; expected projects/PROJECT/secrets/NAME/versions/3,"
                    " not latest, which may change during a run, and not the value"
                )
        for key, value in self.labels.items():
            if not _LABEL_KEY.fullmatch(key) or not _LABEL.fullmatch(value):
                raise UserError(
                    f"labels.{key} is {quote(value)}; use up to 63 of a-z, 0-9, - and _; keys begin with a letter"
                )
            if key in (PROJECT_LABEL[0], *VERSION_KEYS):
                raise UserError(f"labels.{key} is the pipeline's own; choose another key")
        check_run_label(self.run_label)

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the result: the code, its words, inputs and variables; not its machines and secrets."""
        return {
            "image": self.image.rpartition("@")[2],
            "command": list(self.command),
            "arguments": list(self.arguments),
            "inputs": dict(self.inputs),
            "environment": dict(self.environment),
            "run_label": self.run_label,
            **({"files": files} if (files := _local_files(self.command)) else {}),
        }

    @property
    def inputs_sha256(self) -> str:
        """The digest of the inputs."""
        return seal.digest(dict(self.inputs))

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of the replicas: INPUT_NAME with the address of each input, and `environment`."""
        inputs = {f"INPUT_{name.upper()}": address.rpartition("#")[0] for name, address in self.inputs.items()}
        return {**inputs, **self.environment}

    @property
    def words(self) -> list[str]:
        """The command of the replicas, which reads the secrets first."""
        if not self.secrets:
            return list(self.command)
        versions = [f"{name}={version}" for name, version in self.secrets.items()]
        source = Path(secret_variables.__file__).read_text(encoding="utf-8")
        return ["python3", "-c", source, *versions, "--", *self.command]


def read_goal(values: Mapping[str, Any]) -> Goal:
    """Return the goal in values by the names of the pipeline's parameters.

    Raises:
        UserError: A value is wrong.
    """
    minimum = text("minimum_metric", values.get("minimum_metric", ""))
    try:
        number = float(minimum) if minimum else None
    except ValueError:
        raise UserError(f"minimum_metric is {quote(minimum)}; expected a number, or nothing for none") from None
    metric, direction = (text(name, values[name]) for name in ("metric", "direction"))
    return Goal(metric=metric, direction=direction, minimum_metric=number)


def read(values: Mapping[str, Any]) -> Request:
    """Return the request in values by the names of the pipeline's parameters; others are ignored.

    Raises:
        UserError: A value is wrong.
    """
    given: dict[str, Any] = {name: text(name, values[name]) for name in ("image", "run_label") if name in values}
    for name in ("command", "arguments"):
        if not isinstance(words := values.get(name, []), list | tuple):
            raise UserError(f'{name} is {quote(words)}; expected a list of words, e.g. ["python", "train.py"]')
        given[name] = tuple(text(f"{name}[{index}]", each) for index, each in enumerate(words))
    for name in ("inputs", "environment", "secrets", "labels"):
        if not isinstance(found := values.get(name, {}), Mapping):
            # Not shown: it may be a secret.
            raise UserError(f'{name} is not a mapping; expected e.g. {{"name": "value"}}')
        given[name] = {text(name, key): text(f"{name}.{key}", each) for key, each in found.items()}
    return Request(**given)


def text(name: str, value: Any) -> str:
    """Return a text, or a number as text: within lists and mappings, Vertex AI turns 3 into 3.0.

    Raises:
        UserError: It is something else, or no program can receive it.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if (not is_number and not isinstance(value, str)) or value != value:
        raise UserError(f"{name} is {type(value).__name__}; expected a text or a number")
    if is_number and abs(value) > MAX_EXACT:
        raise UserError(f"{name} is a number beyond 2**53, which Vertex AI rounds; give it as text")
    found = str(int(value) if isinstance(value, float) and value.is_integer() else value)
    if "\0" in found or found != found.encode(errors="ignore").decode():
        raise UserError(f"{name} has a character that no program can receive (NUL, or not UTF-8)")
    return found


def check_release(*, model_name: str, serving_image: str, deploy_endpoint: str) -> None:
    """Refuse a registration or a deployment that lacks something; without a model name there is none.

    Raises:
        UserError: A value is wrong or missing.
    """
    if model_name:
        check_names(model_name=model_name)
        if not serving_image:
            raise UserError(
                "serving_image is empty; expected the container image that serves the model, or an empty model_name,"
                " which registers nothing"
            )
        check_image("serving_image", serving_image)
    elif deploy_endpoint:
        raise UserError("deploy_endpoint is set, but model_name is empty; only a registered model is deployed")


def _local_files(command: tuple[str, ...]) -> dict[str, str]:
    """Return the digests of Python files that a local run executes; in the cloud the image's digest identifies them."""
    if not is_local_step():
        return {}
    modules = [module for flag, module in itertools.pairwise(command) if flag == "-m"]
    paths = [word for word in command if word.endswith(".py") and os.path.isabs(word)]
    paths += [os.path.join(folder, *name.split(".")) + ".py" for name in modules for folder in sys.path]
    return {
        os.path.basename(path): seal.digest(Path(path).read_text("utf-8", "replace"))
        for path in paths
        if os.path.isfile(path)
    }
