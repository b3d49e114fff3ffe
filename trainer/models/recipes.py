"""The recipe of a training: what Keras offers beyond the flags, checked without importing Keras.

The tables list what resumes exactly, because the checkpoint has all of its state. Left out are ema_overwrite_frequency,
which Keras cannot do on several devices, loss_scale_factor, which follows from `--precision`, and amsgrad, which the
fused Adam does not have.
tests/trainer/models/test_recipes.py compares the tables with the constructors of the installed Keras.
"""

import dataclasses
import json
import operator
from collections.abc import Sequence
from typing import Any

from localvertex._base import kinds
from localvertex._base.kinds import Classes, Either, Number
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_json
from trainer.data.augmentation import presets

_FRACTION, _NUMBER, _STEPS = Number(lowest=0, highest=0.999999), Number(lowest=0, highest=1e9), range(1, 10**9)
_KINDS = {
    "nesterov centered use_ema staircase cycle": bool,
    "beta_1 beta_2 rho momentum ema_momentum label_smoothing": _FRACTION,
    "gradient_accumulation_steps": range(2, 10**6),
    "decay_steps first_decay_steps warmup_steps": _STEPS,
    "boundaries": [_STEPS],
    "values": [_NUMBER],
}
"""Keys of a config -> their kind; all others are numbers from 0 on."""
OPTIMIZERS = Classes(
    keys={
        "Adam": "beta_1 beta_2 epsilon",
        "AdamW": "beta_1 beta_2 epsilon",
        "Lamb": "beta_1 beta_2 epsilon",
        "Lion": "beta_1 beta_2",
        "Nadam": "beta_1 beta_2 epsilon",
        "RMSprop": "rho momentum epsilon centered",
        "SGD": "momentum nesterov",
    },
    common="weight_decay clipnorm clipvalue global_clipnorm use_ema ema_momentum gradient_accumulation_steps",
    kinds=_KINDS,
    other=_NUMBER,
    needs={"ema_momentum": "use_ema"},
)
"""Classes of keras.optimizers."""
SCHEDULES = Classes(
    keys={
        "CosineDecay": "initial_learning_rate decay_steps alpha warmup_target warmup_steps",
        "CosineDecayRestarts": "initial_learning_rate first_decay_steps t_mul m_mul alpha",
        "ExponentialDecay": "initial_learning_rate decay_steps decay_rate staircase",
        "InverseTimeDecay": "initial_learning_rate decay_steps decay_rate staircase",
        "PiecewiseConstantDecay": "boundaries values",
        "PolynomialDecay": "initial_learning_rate decay_steps end_learning_rate power cycle",
    },
    required="initial_learning_rate decay_rate boundaries values",
    kinds=_KINDS,
    other=_NUMBER,
    needs={"warmup_steps": "warmup_target", "warmup_target": "warmup_steps"},
)
"""Classes of keras.optimizers.schedules; without decay_steps, they end at the last step."""
LOSSES = Classes(
    keys={"CategoricalCrossentropy": "label_smoothing", "CategoricalFocalCrossentropy": "alpha gamma label_smoothing"},
    kinds=_KINDS,
    other=_NUMBER,
)
"""Classes of keras.losses."""
_WEIGHT = Number(lowest=1e-6, highest=1e6)
_LAYER = {"class_name": tuple(presets.LAYERS), "config": dict}
_RECIPE = {
    "optimizer": OPTIMIZERS,
    "learning_rate": Either(kinds=(Number(lowest=1e-12, highest=1e6), SCHEDULES)),
    "loss": LOSSES,
    "augmentation": Either(kinds=(tuple(presets.PRESETS), [Either(kinds=(_LAYER, [_LAYER]))])),
    "class_weights": Either(kinds=(("none", "auto", "balanced"), {str: _WEIGHT})),
    "sampling": ("natural", "balanced"),
    "fine_tuning": {"start": _FRACTION, "layers": _STEPS, "learning_rate_multiplier": _WEIGHT},
}
_IMBALANCE = 3
"""Size of the largest class, as a multiple of the smallest, from which the classes have weights by default."""
PRESETS = {
    "standard": """{"optimizer": {"class_name": "AdamW", "config": {"weight_decay": 0.01, "global_clipnorm": 1.0}},
        "loss": {"class_name": "CategoricalCrossentropy", "config": {"label_smoothing": 0.1}},
        "augmentation": "standard", "class_weights": "auto"}""",
    "fine-tuning": """{"optimizer": {"class_name": "AdamW", "config": {"weight_decay": 0.01, "global_clipnorm": 1.0}},
        "learning_rate": 0.001, "fine_tuning": {"start": 0.3, "learning_rate_multiplier": 0.1},
        "loss": {"class_name": "CategoricalCrossentropy", "config": {"label_smoothing": 0.1}},
        "augmentation": "light", "class_weights": "auto"}""",
    "rare-classes": """{"optimizer": {"class_name": "AdamW", "config": {"weight_decay": 0.01, "global_clipnorm": 1.0}},
        "loss": {"class_name": "CategoricalFocalCrossentropy", "config": {"alpha": 1.0}},
        "augmentation": "standard", "sampling": "balanced"}""",
}
"""Recipes by name. The identity of a run has their content: a preset that changes makes other runs."""
REPLACED = {
    "optimizer": "optimizer",
    "learning_rate": "learning_rate",
    "learning_rate_schedule": "schedule",
    "warmup_fraction": "schedule",
    "augment": "augmentation",
    "shuffle": "sampling",
    "trainable": "fine_tuning",
}
"""Field of `TrainConfig` -> what a recipe gives, so that the field has no effect."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """A recipe that `parse` has checked; a field of None is not given, so that the flag counts."""

    optimizer: Any = None
    """{class_name, config} of one of OPTIMIZERS."""
    learning_rate: Any = None
    """A number is the peak of the flags' schedule; {class_name, config} of one of SCHEDULES replaces it."""
    loss: Any = None
    """{class_name, config} of one of LOSSES."""
    augmentation: Any = ()
    """A list as in `trainer.data.augmentation.presets`, even for a preset, which replaces `augment`."""
    class_weights: Any = None
    """auto, none, balanced, or class name -> weight (1 for the others); None: `for_data` decides."""
    sampling: Any = None
    """balanced: each class is seen equally often."""
    fine_tuning: Any = None
    """{start, layers, learning_rate_multiplier}: after a fraction of all steps (0.5), which train the head alone, the
    last layers of the pretrained base (all) are also trained. The learning rate of the head follows one schedule over
    all steps, and that of the base is a multiple (1) of it at each step. The base has no weight decay, which would pull
    it towards zero instead of its pretrained weights. In the second phase the optimizer starts afresh, without momenta
    and averages of the first one.
    """

    @property
    def schedule(self) -> Any:
        """The schedule {class_name, config} of the learning rate; None: the schedule of the flags."""
        return self.learning_rate if isinstance(self.learning_rate, dict) else None

    @property
    def text(self) -> str:
        """One JSON text, however it was spelled; empty if nothing is given."""
        given = {name: value for name, value in vars(self).items() if value}
        return json.dumps(given, sort_keys=True) if given else ""

    @property
    def num_accumulated(self) -> int:
        """Number of steps whose gradients make one update."""
        return self.optimizer["config"].get("gradient_accumulation_steps", 1) if self.optimizer else 1

    def check_devices(self, num_devices: int) -> None:
        """Refuse what works on one device only.

        Raises:
            UserError: There are several devices, and the recipe accumulates gradients.
        """
        # Keras updates inside a branch, which cannot be traced on several devices.
        if num_devices > 1 and self.num_accumulated > 1:
            raise UserError(
                f"recipe: gradient_accumulation_steps does not work on {num_devices} devices; leave it out, because"
                " they share the global batch, or train on one device"
            )

    def for_data(self, counts: Sequence[int]) -> "Recipe":
        """Return the recipe for a dataset: `auto` weights, even where nothing is given, or none as nothing.

        Args:
            counts: Training examples per class.
        """
        if self.class_weights not in (None, "auto", "none"):
            return self
        is_needed = not self.sampling and max(counts) >= _IMBALANCE * min(filter(None, counts))
        return dataclasses.replace(self, class_weights=(self.class_weights or "auto") if is_needed else None)

    def weights_of(self, counts: Sequence[int], class_names: Sequence[str]) -> list[float]:
        """Return a weight per class, with a mean of 1 over the examples that are drawn; empty if all are the same.

        Args:
            counts: Training examples per class.
            class_names: The classes, in the same order.

        Raises:
            UserError: A weight is of a class that the dataset does not have.
        """
        given = self.class_weights
        drawn = [min(count, 1) for count in counts] if self.sampling else counts
        # A class without examples gets the smallest weight, so that it does not count as rare.
        weights = [1 / (count or max(drawn)) for count in drawn]
        if isinstance(given, dict):
            kinds.check("recipe.class_weights", given, dict.fromkeys(class_names, _WEIGHT))
            weights = [given.get(name, 1.0) for name in class_names]
        elif given in (None, "none"):
            return []
        mean = sum(map(operator.mul, weights, drawn)) / sum(drawn)
        return [weight / mean for weight in weights]


def parse(text: str) -> Recipe:
    """Return the recipe that a text means: a preset's name, a JSON object, or an empty text.

    Raises:
        UserError: It is neither, or what it gives is not allowed.
    """
    content = PRESETS.get(text, text or "{}")
    if content.lstrip()[:1] != "{":
        kinds.check("recipe", text, (*PRESETS, "a JSON object"))
    given = kinds.check("recipe", parse_json(content, "recipe"), _RECIPE)
    if isinstance(preset := given.get("augmentation"), str):
        given["augmentation"] = json.loads(presets.PRESETS[preset])
    given.get("fine_tuning", {}).setdefault("start", 0.5)
    return Recipe(**{name: value for name, value in given.items() if value not in ("natural", [], {})})
