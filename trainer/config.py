"""The mathematical part of a training run: everything that decides its result, and nothing else.

A hyperparameter is one field of `TrainConfig`, with its type, default, help text and allowed values in one place.
"""

import argparse
import dataclasses
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from localvertex._base.kinds import Number
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import quote
from trainer import settings
from trainer.data.splits import check_batch_size
from trainer.models import models, recipes
from trainer.settings import FRACTION, check_all, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Configuration of a training. Two runs with equal configurations and equal data are the same run.

    Raises:
        UserError: A field has the wrong type, is out of its range or not one of its choices.
    """

    model: str = setting(
        "Network to train: a name from `python -m trainer.task --list-models`, or package.module:function of your own.",
        str,
        default="convnet",
    )
    weights: str = setting(
        "Weights to start from: default (imagenet where the model has them, else none), imagenet, none, a path to a"
        " .weights.h5 or .keras file, or run:FOLDER with the checkpoint folder of a finished run; in a pipeline"
        " run:ID or model:NAME@ALIAS.",
        str,
        default="default",
    )
    trainable: str = setting(
        "Trained part: head (a pretrained base stays frozen), all, or default (head where the base starts from"
        " pretrained weights, else all).",
        models.TRAINABLE,
        default="default",
    )
    epochs: int = setting("Passes over the training split.", range(1, 100_001), default=20)
    max_steps: int = setting(
        "For a trial: stop after this many steps even if the epochs are not done; 0: no limit.",
        range(10**9 + 1),
        default=0,
    )
    patience: int = setting(
        "Stop early after this many validations in a row (one per epoch) without an improvement; 0: never.",
        range(100_001),
        default=0,
        is_later=True,
    )
    minimum_accuracy_gain: float = setting(
        "Smallest gain of the metric on the validation split that patience counts as an improvement;"
        " 0: any gain, or an equal value with a lower loss.",
        FRACTION,
        default=0.0,
        is_later=True,
    )
    metric: str = setting(
        "Metric that selects the best checkpoint on the validation split and judges the model on the test split:"
        " accuracy, balanced-accuracy (mean recall of the classes) or macro-f1.",
        # Those of trainer.models.metrics, which imports NumPy.
        ("accuracy", "balanced-accuracy", "macro-f1"),
        default="accuracy",
        is_later=True,
    )
    global_batch_size: int = setting(
        "Examples per step over all devices of all machines together.", range(1, 1_000_001), default=64
    )
    learning_rate: float = setting("Peak learning rate.", Number(lowest=1e-12, highest=1e6), default=0.002)
    learning_rate_schedule: str = setting(
        "Learning rate after the warm-up: cosine (down to zero at the last step) or constant.",
        ("cosine", "constant"),
        default="cosine",
    )
    warmup_fraction: float = setting(
        "Fraction of all steps in which the learning rate rises linearly from zero.",
        Number(lowest=0, highest=0.9),
        default=0.05,
    )
    optimizer: str = setting(
        "Update rule: adam, rmsprop, or sgd (with momentum 0.9).", ("adam", "rmsprop", "sgd"), default="adam"
    )
    augment: str = setting(
        "Random changes to training images: none, shift (by up to an eighth of the edge), flip-and-shift (also mirrored"
        " left to right half of the time) or crop-and-flip (a random crop of 8% to 100% of the image, resized, and"
        " mirrored).",
        ("none", "shift", "flip-and-shift", "crop-and-flip"),
        default="shift",
    )
    recipe: str = setting(
        "Optimizer, learning rate, loss, augmentation and balance of the classes as Keras has them: a preset"
        f" ({', '.join(recipes.PRESETS)}) or a JSON object; empty: the other parameters, and class weights"
        " where the largest class has three times the images of the smallest.",
        str,
        default="",
        is_later=True,
    )
    shuffle: str = setting(
        "Order of the training examples: whole (any permutation), blocks (neighbours are read together, for data much"
        " larger than memory), or default (blocks above about 32 GiB).",
        ("default", "whole", "blocks"),
        default="default",
    )
    # It must fit the 32-bit seeds of TensorFlow's stateless operations.
    seed: int = setting("Seed of initial weights, example order, augmentation and dropout.", range(2**31), default=0)

    def __post_init__(self) -> None:
        check_all(self)
        if self.minimum_accuracy_gain and not self.patience:
            raise UserError(
                f"minimum_accuracy_gain={self.minimum_accuracy_gain:g} has no effect without patience; give patience"
                " as well"
            )
        # Equal recipes are one run; a preset that changes is a different run.
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
        """Refuse settings that parameter servers cannot keep.

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
        return [f"{settings.flag(name)}={value}" for name, value in self.to_dict().items()]

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
    """Give `parser` one flag per field."""
    group = parser.add_argument_group("what is trained (changing any of these makes it a different run)")
    settings.add_flags(group, TrainConfig)


def from_namespace(namespace: argparse.Namespace) -> TrainConfig:
    """Return the configuration from what `add_flags` parsed."""
    return TrainConfig(**{field.name: getattr(namespace, field.name) for field in dataclasses.fields(TrainConfig)})
