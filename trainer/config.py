"""The mathematical part of a training run: everything that decides its result, and nothing else.

A hyperparameter is one field of `TrainConfig`, with its type, default, help text and allowed values in one place.
"""

import argparse
import dataclasses
import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import quote
from trainer.data.splits import check_batch_size
from trainer.models import models, recipes

_BEYOND = 2**1000


def _hyperparameter(
    default: str | int | float,
    help_text: str,
    *,
    choices: tuple[str, ...] = (),
    lowest: float = -math.inf,
    highest: float = math.inf,
    is_later: bool = False,
) -> Any:
    """Return a field with a default, its help text, and the values it may have.

    A later field is one that earlier runs did not have: at its default it does not change the identity of a run.
    """
    return dataclasses.field(
        default=default,
        metadata={"help": help_text, "choices": choices, "lowest": lowest, "highest": highest, "is_later": is_later},
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Configuration of a training. Two runs with equal configurations and equal data are the same run.

    Raises:
        UserError: A field has the wrong type, is out of its range or not one of its choices.
    """

    model: str = _hyperparameter(
        "convnet",
        "Network to train: a name from `python -m trainer.task --list-models`, or package.module:function of your own.",
    )
    weights: str = _hyperparameter(
        "default",
        "Weights to start from: default (imagenet where the model has them, else none), imagenet, none, a path to a"
        " .weights.h5 or .keras file, or run:FOLDER with the checkpoint folder of a finished run; in a pipeline"
        " run:ID or model:NAME@ALIAS.",
    )
    trainable: str = _hyperparameter(
        "default",
        "Trained part: head (a pretrained base stays frozen), all, or default (head where the base starts from"
        " pretrained weights, else all).",
        choices=models.TRAINABLE,
    )
    epochs: int = _hyperparameter(20, "Passes over the training split.", lowest=1, highest=100_000)
    max_steps: int = _hyperparameter(
        0,
        "For a trial: stop after this many steps even if the epochs are not done; 0: no limit.",
        lowest=0,
        highest=10**9,
    )
    patience: int = _hyperparameter(
        0,
        "Stop early after this many validations in a row (one per epoch) without an improvement; 0: never.",
        lowest=0,
        highest=100_000,
        is_later=True,
    )
    minimum_accuracy_gain: float = _hyperparameter(
        0.0,
        "Smallest gain of the metric on the validation split that patience counts as an improvement;"
        " 0: any gain, or an equal value with a lower loss.",
        lowest=0.0,
        highest=1.0,
        is_later=True,
    )
    metric: str = _hyperparameter(
        "accuracy",
        "Metric that selects the best checkpoint on the validation split and judges the model on the test split:"
        " accuracy, balanced-accuracy (mean recall of the classes) or macro-f1.",
        # Those of trainer.models.metrics, which imports NumPy.
        choices=("accuracy", "balanced-accuracy", "macro-f1"),
        is_later=True,
    )
    global_batch_size: int = _hyperparameter(
        64, "Examples per step over all devices of all machines together.", lowest=1, highest=1_000_000
    )
    learning_rate: float = _hyperparameter(0.002, "Peak learning rate.", lowest=1e-12, highest=1e6)
    learning_rate_schedule: str = _hyperparameter(
        "cosine",
        "Learning rate after the warm-up: cosine (down to zero at the last step) or constant.",
        choices=("cosine", "constant"),
    )
    warmup_fraction: float = _hyperparameter(
        0.05, "Fraction of all steps in which the learning rate rises linearly from zero.", lowest=0.0, highest=0.9
    )
    optimizer: str = _hyperparameter(
        "adam", "Update rule: adam, rmsprop, or sgd (with momentum 0.9).", choices=("adam", "rmsprop", "sgd")
    )
    augment: str = _hyperparameter(
        "shift",
        "Random changes to training images: none, shift (by up to an eighth of the edge), flip-and-shift (also mirrored"
        " left to right half of the time) or crop-and-flip (a random crop of 8% to 100% of the image, resized, and"
        " mirrored).",
        choices=("none", "shift", "flip-and-shift", "crop-and-flip"),
    )
    recipe: str = _hyperparameter(
        "",
        "Optimizer, learning rate, loss, augmentation and balance of the classes as Keras has them: a preset"
        f" ({', '.join(recipes.PRESETS)}) or a JSON object; empty: the other parameters, and class weights"
        " where the largest class has three times the images of the smallest.",
        is_later=True,
    )
    shuffle: str = _hyperparameter(
        "default",
        "Order of the training examples: whole (any permutation), blocks (neighbours are read together, for data much"
        " larger than memory), or default (blocks above about 32 GiB).",
        choices=("default", "whole", "blocks"),
    )
    # It must fit the 32-bit seeds of TensorFlow's stateless operations.
    seed: int = _hyperparameter(
        0,
        "Seed of initial weights, example order, augmentation and dropout.",
        lowest=0,
        highest=2**31 - 1,
    )

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = _convert(field, getattr(self, field.name))
            _check(field, value)
            object.__setattr__(self, field.name, value)
        if self.minimum_accuracy_gain and not self.patience:
            raise UserError(
                f"minimum_accuracy_gain={self.minimum_accuracy_gain:g} has no effect without patience; give patience,"
                " too"
            )
        # Equal recipes are one run, and a preset that changes is another one.
        given = recipes.parse(self.recipe)
        models.check(self.model, self.weights, "head" if given.fine_tuning else self.trainable)
        object.__setattr__(self, "recipe", given.text)
        for name, key in recipes.REPLACED.items():
            if getattr(given, key) and getattr(self, name) != getattr(TrainConfig, name):
                raise UserError(
                    f"{name}={quote(getattr(self, name))} and the recipe's {key} exclude each other; give one"
                )

    def to_dict(self) -> dict[str, str | int | float]:
        """Return the fields, in their order."""
        return dataclasses.asdict(self)

    def identity_fields(self) -> dict[str, str | int | float]:
        """Return the fields that identify a run: all but later fields at their default."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if not field.metadata["is_later"] or getattr(self, field.name) != field.default
        }

    def for_data(self, counts: Sequence[int]) -> "TrainConfig":
        """Return the configuration for a dataset, with class weights where its recipe leaves them to the data.

        Args:
            counts: Training examples per class.
        """
        return dataclasses.replace(self, recipe=recipes.parse(self.recipe).for_data(counts).text)

    def num_steps(self, num_train: int) -> int:
        """Return the planned length of the run, which ends with a whole group of accumulated gradients.

        Args:
            num_train: Examples of the training split.

        Raises:
            UserError: They are fewer than a batch, or the run is shorter than a group.
        """
        check_batch_size(self.global_batch_size, num_train)
        steps = self.epochs * (num_train // self.global_batch_size)
        steps, group = min(steps, self.max_steps or steps), recipes.parse(self.recipe).num_accumulated
        if steps < group:
            raise UserError(
                f"recipe: gradient_accumulation_steps={group}, but the run has {steps} steps, so the weights"
                " would never change; give fewer, or train longer"
            )
        return steps - steps % group

    def check_for_parameter_servers(self, *, exact: bool) -> None:
        """Refuse what parameter servers cannot keep.

        Args:
            exact: Whether the run has to give bit-identical weights.

        Raises:
            UserError: The run has to be exact, may stop early or has a recipe.
        """
        if self.recipe:
            raise UserError("recipe does not work with parameter servers; train without them, or leave it out")
        if exact:
            raise UserError(
                "exact does not work with parameter servers, whose order of updates depends on timing; train without"
                " them, or omit exact"
            )
        if self.patience:
            raise UserError(
                f"patience={self.patience} does not work with parameter servers, whose scores and thus the last step"
                " depend on timing; train without them, or set patience=0"
            )

    def to_flags(self) -> list[str]:
        """Return the command line of `trainer.task` for this configuration, with every field written out."""
        return [f"{_flag(name)}={value}" for name, value in self.to_dict().items()]

    def fingerprint(self) -> str:
        """Return 64 hexadecimal digits: SHA-256 of the fields that identify a run."""
        return hashlib.sha256(json.dumps(self.identity_fields(), sort_keys=True).encode()).hexdigest()


def from_dict(fields: dict[str, Any]) -> TrainConfig:
    """Return the configuration that `to_dict` wrote.

    Raises:
        UserError: A field is unknown or its value is wrong.
    """
    known = {field.name for field in dataclasses.fields(TrainConfig)}
    if unknown := sorted(set(fields) - known):
        raise UserError(f"unknown configuration field {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return TrainConfig(**fields)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Give `parser` one flag per field; the field's metadata has its help text."""
    group = parser.add_argument_group("what is trained (changing any of these makes it a different run)")
    for field in dataclasses.fields(TrainConfig):
        choices = field.metadata["choices"]
        group.add_argument(
            _flag(field.name),
            type=_type(field),
            choices=choices or None,
            default=field.default,
            metavar=None if choices else _type(field).__name__.upper(),
            help=f"{field.metadata['help'].replace('%', '%%')} [%(default)s]",
        )


def from_namespace(namespace: argparse.Namespace) -> TrainConfig:
    """Return the configuration from what `add_flags` parsed."""
    return TrainConfig(**{field.name: getattr(namespace, field.name) for field in dataclasses.fields(TrainConfig)})


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _type(field: dataclasses.Field[Any]) -> type:
    # Annotations would be strings with `from __future__ import annotations`.
    assert isinstance(field.type, type)  # noqa: S101 - for the type checker
    return field.type


def _convert(field: dataclasses.Field[Any], value: Any) -> Any:
    """Return the value in the field's type; int is accepted for float, and an integral float for int."""
    wanted = _type(field)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        # An integer beyond the range of floats is out of every field's range, too.
        return float(value) if abs(value) < _BEYOND else math.copysign(math.inf, value)
    # kfp passes integers inside structures as floats.
    if wanted is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if type(value) is not wanted:
        raise UserError(f"{field.name}={quote(value)} is a {type(value).__name__}; expected {wanted.__name__}")
    return value


def _check(field: dataclasses.Field[Any], value: Any) -> None:
    choices, lowest, highest = (field.metadata[name] for name in ("choices", "lowest", "highest"))
    if choices and value not in choices:
        raise UserError(f"{field.name}={quote(value)} is not known; choose one of: {', '.join(choices)}")
    # Also false for NaN.
    if not isinstance(value, str) and not (lowest <= value <= highest and abs(value) < math.inf):
        raise UserError(f"{field.name}={quote(value)} is out of range; expected a value from {lowest:g} to {highest:g}")
