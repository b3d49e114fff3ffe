"""The mathematical part of a training run: everything that decides its result, and nothing else."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import hashlib
import inspect
import json
import math
from typing import Any

from trainer import models
from userinput.errors import UserError

OPTIMIZERS = ("adam", "rmsprop", "sgd")
SCHEDULES = ("cosine", "constant")
AUGMENTATIONS = ("none", "shift", "flip-and-shift", "crop-and-flip")
SHUFFLES = ("default", "whole", "blocks")
CHOICES: dict[str, tuple[str, ...]] = {
    "trainable": models.TRAINABLE,
    "optimizer": OPTIMIZERS,
    "learning_rate_schedule": SCHEDULES,
    "augment": AUGMENTATIONS,
    "shuffle": SHUFFLES,
}
# (lowest, highest) allowed value of each number. A seed must fit the 32-bit seeds of TensorFlow's stateless operations.
RANGES: dict[str, tuple[float, float]] = {
    "epochs": (1, 100_000),
    "max_steps": (0, 10**9),
    "global_batch_size": (1, 1_000_000),
    "learning_rate": (1e-12, 1e6),
    "warmup_fraction": (0.0, 0.9),
    "seed": (0, 2**31 - 1),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """What is trained and how. Two runs with equal configurations and equal data are the same run.

    Raises:
        UserError: a field has the wrong type, is out of its range or not one of its choices.
    """

    model: str = "convnet"
    """Network to train: a name that `python -m trainer.task --list-models` describes, or package.module:function of your own."""  # noqa: E501
    weights: str = "default"
    """Weights to start from: default (imagenet where the model has them, else none), imagenet, none, or a path to a .weights.h5 or .keras file."""  # noqa: E501
    trainable: str = "default"
    """What is trained: head (a pretrained base stays frozen), all, or default (head where the base starts from pretrained weights, else all)."""  # noqa: E501
    epochs: int = 20
    """Passes over the training split."""
    max_steps: int = 0
    """Stop after this many steps even if the epochs are not done; 0: no limit. For a trial."""
    global_batch_size: int = 64
    """Examples per step over all devices of all machines together."""
    learning_rate: float = 0.002
    """Highest learning rate of the schedule."""
    learning_rate_schedule: str = "cosine"
    """How the learning rate goes after the warm-up: cosine (down to zero at the last step) or constant."""
    warmup_fraction: float = 0.05
    """Share of all steps in which the learning rate rises linearly from zero."""
    optimizer: str = "adam"
    """Update rule: adam, rmsprop, or sgd (with momentum 0.9)."""
    augment: str = "shift"
    """Random changes of training images: none, shift (by up to an eighth of the edge), flip-and-shift (and mirrored left to right in half of the cases), crop-and-flip (a random part of 8 % to all of the image, enlarged, and mirrored)."""  # noqa: E501
    shuffle: str = "default"
    """Order of the training examples: whole (any permutation), blocks (neighbours are read together, for data much larger than memory), or default (blocks above about 32 GiB)."""  # noqa: E501
    seed: int = 0
    """Decides initial weights, order of examples, random changes and dropout."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = _typed(field, getattr(self, field.name))
            _check(field.name, value)
            object.__setattr__(self, field.name, value)
        models.check(self.model, self.weights, self.trainable)

    def to_dict(self) -> dict[str, str | int | float]:
        """The fields, in their order."""
        return dataclasses.asdict(self)

    def to_flags(self) -> list[str]:
        """The command line of `trainer.task` that gives this configuration, every field written out."""
        return [f"{_flag(name)}={value}" for name, value in self.to_dict().items()]

    def fingerprint(self) -> str:
        """64 hexadecimal digits: SHA-256 of the fields."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()


def from_dict(fields: dict[str, Any]) -> TrainConfig:
    """The configuration that `to_dict` wrote.

    Raises:
        UserError: a field is unknown or its value wrong.
    """
    known = {field.name for field in dataclasses.fields(TrainConfig)}
    if unknown := sorted(set(fields) - known):
        raise UserError(f"unknown configuration field {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return TrainConfig(**fields)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Give `parser` one flag a field, its help being the text under the field."""
    group = parser.add_argument_group("what is trained (each of these makes it another run)")
    meanings = _meanings()
    for field in dataclasses.fields(TrainConfig):
        group.add_argument(
            _flag(field.name),
            type=_TYPES[str(field.type)],
            choices=CHOICES.get(field.name),
            default=field.default,
            metavar=None if field.name in CHOICES else str(field.type).upper(),
            help=f"{meanings[field.name].replace('%', '%%')} [%(default)s]",
        )


def from_namespace(namespace: argparse.Namespace) -> TrainConfig:
    """The configuration from what `add_flags` parsed."""
    return TrainConfig(**{field.name: getattr(namespace, field.name) for field in dataclasses.fields(TrainConfig)})


_TYPES: dict[str, Any] = {"str": str, "int": int, "float": float}


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _typed(field: dataclasses.Field[Any], value: Any) -> Any:
    """The value in the field's type; an integer is fine where a float is wanted, and an integral float for an int."""
    wanted = str(field.type)
    if wanted == "float" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # kfp hands integers inside structures over as floats.
    if wanted == "int" and isinstance(value, float) and value.is_integer():
        return int(value)
    if type(value) is not _TYPES[wanted]:
        raise UserError(f"{field.name}={value!r} is a {type(value).__name__}; expected {wanted}")
    return value


def _check(name: str, value: Any) -> None:
    if name in CHOICES and value not in CHOICES[name]:
        raise UserError(f"{name}={value!r} is not known; choose one of: {', '.join(CHOICES[name])}")
    if name in RANGES:
        lowest, highest = RANGES[name]
        if not (math.isfinite(value) and lowest <= value <= highest):
            raise UserError(f"{name}={value} is out of range; expected a value from {lowest:g} to {highest:g}")


def _meanings() -> dict[str, str]:
    """The text under each field, read from the source so that help and code cannot drift apart."""
    body = ast.parse(inspect.getsource(TrainConfig)).body[0]
    assert isinstance(body, ast.ClassDef)  # noqa: S101 - tells the type checker what getsource of a class gives
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(field.target, ast.Name):
            found[field.target.id] = ast.literal_eval(text.value)
    return found
