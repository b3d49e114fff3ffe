"""The identity of a training run, and its result in a sentence. Needs no TensorFlow for local paths."""

import dataclasses
from typing import Any

from exact_resume.checkpoints import manifest
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import quote
from trainer.checkpoints import exactness
from trainer.config import TrainConfig
from trainer.models import user_model

TRAINER_VERSION = "3"
"""Increase this when a change makes equal configurations compute something else: every run then starts from scratch."""
DEFAULTS = {field.name: field.default for field in dataclasses.fields(TrainConfig)}
"""A later field is left out of the identity at its default."""
WAY_ON = "give another --checkpoint-directory"
_MAX_LABEL = 500


def identity(config: TrainConfig, dataset_fingerprint: str, run_label: str, *, exact: bool = False) -> dict[str, Any]:
    """Return everything that decides what a run computes, as a flat mapping that every checkpoint contains.

    Raises:
        UserError: The model is the user's own and its source is not found, or the label is not a short text.
    """
    check_run_label(run_label)
    return {
        **config.identity_fields(),
        # The user's own network is identified by its source: other code makes it another run.
        **({"model_source": user_model.digest(config.model)} if ":" in config.model else {}),
        "dataset_fingerprint": dataset_fingerprint,
        "trainer_version": TRAINER_VERSION,
        "run_label": run_label,
        # A field that did not exist from the start is left out at its default, so that earlier runs stay the same.
        **({"exact": True} if exact else {}),
    }


def check_run_label(run_label: str) -> None:
    """Refuse a label that could not be recorded or shown.

    Raises:
        UserError: It is too long, or has control characters or characters that are not UTF-8.
    """
    if len(run_label) > _MAX_LABEL or not run_label.isprintable():
        raise UserError(
            f"run_label is {quote(run_label)}; expected at most {_MAX_LABEL} characters, all of them printable"
        )


def run_id(config: TrainConfig, dataset_fingerprint: str, run_label: str, *, exact: bool = False) -> str:
    """Return 16 lower-case hexadecimal digits of what the run computes; machines and paths do not count."""
    return manifest.run_id(identity(config, dataset_fingerprint, run_label, exact=exact))


def summary(result: dict[str, Any], constant_answer: tuple[str, float]) -> str:
    """Return a short summary of a result.

    Args:
        result: Content of `result.json`.
        constant_answer: A class, and the validation accuracy of always answering it.
    """
    steps, planned = result["final_step"], result["num_planned_steps"]
    early = "" if steps == planned else f" of {planned} (stopped early: {result['stop_reason']})"
    other = f"{result['metric']} {result['score']:.4f} and " if "score" in result else ""
    name, accuracy = constant_answer
    devices = result.get("devices") or []
    described = f"{'exact' if len(devices) == 1 else 'not exact'} on {exactness.describe_devices(devices)}"
    exact = f", {described}" if devices else ""
    return (
        f"{steps} steps{early}, best at step {result['best_step']} with validation {other}accuracy"
        f" {result['validation_accuracy']:.4f} ({accuracy:.4f} by always answering {quote(name)}){exact}"
    )
