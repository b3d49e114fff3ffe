"""A run with a recipe, killed again and again, which has to end as a run without a kill.

`python -m tests.support.killed_recipe DATASET FOLDER NUM_KILLS KIND [FLAG...]` prints where it was killed.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

from exact_resume.checkpoints import checkpoints
from exact_resume.files import publication
from trainer.models.recipes import OPTIMIZERS

_MIXING = [
    {"class_name": "RandomFlip", "config": {"mode": "horizontal"}},
    [{"class_name": "MixUp", "config": {}}, {"class_name": "CutMix", "config": {}}],
]


def _optimizer(name: str = "SGD", **config: Any) -> dict[str, Any]:
    return {"optimizer": {"class_name": name, "config": config}}


KINDS: dict[str, dict[str, Any]] = {
    "all together": {
        **_optimizer("AdamW", use_ema=True, ema_momentum=0.9, gradient_accumulation_steps=3, global_clipnorm=1.0),
        "learning_rate": {
            "class_name": "CosineDecay",
            "config": {"initial_learning_rate": 0.0, "warmup_target": 0.005, "warmup_steps": 5},
        },
        "loss": {"class_name": "CategoricalFocalCrossentropy", "config": {"label_smoothing": 0.05}},
        "class_weights": "balanced",
        "sampling": "balanced",
        "augmentation": _MIXING,
    },
    "averages (EMA)": _optimizer(use_ema=True, ema_momentum=0.9),
    "gradient accumulation": _optimizer(gradient_accumulation_steps=5),
    **{f"optimizer {name}": _optimizer(name, weight_decay=0.01) for name in OPTIMIZERS.keys if name != "SGD"},
    "optimizer SGD": _optimizer(momentum=0.9, nesterov=True, clipnorm=1.0),
    "optimizer RMSprop, centered": _optimizer("RMSprop", centered=True, momentum=0.5),
    "balanced sampling": {"sampling": "balanced"},
    "MixUp and CutMix": {"augmentation": _MIXING},
    "class weights": {"class_weights": "balanced"},
}
"""Each kind of state that a recipe adds -> a recipe that has it."""
_RUN = ("--exact", "--max-steps=150", "--epochs=100", "--global-batch-size=32", "--checkpoint-every-steps=2")


def prove(kind: str, dataset: Path, folder: Path, draw: random.Random, num_kills: int, *flags: str) -> list[str]:
    """Kill a run and compare it in the end; return where it was killed, once for each time.

    Args:
        kind: One of `KINDS`.
        dataset: The prepared dataset.
        folder: Where the checkpoint folders are made.
        draw: Random numbers.
        num_kills: How many times it is killed.
        *flags: Further flags of `trainer.task`.

    Raises:
        AssertionError: The run ended otherwise than one without a kill.
    """
    # TensorFlow is imported only where a run is killed, not where `KINDS` is read.
    from tests.support.disturbed_run import DisturbedRun
    from tests.support.forked_job import ForkedJob, kill_at
    from trainer.learner.learner import Learner

    places: list[tuple[Any, str]] = [
        *((Learner, name) for name in ("train", "evaluate")),
        (publication, "_flush_to_disk"),
        *((checkpoints, name) for name in ("_manifest", "prune")),
    ]
    words = [f"--dataset={dataset}", f"--recipe={json.dumps(KINDS[kind])}", *_RUN, *flags]
    whole, killed = folder / "whole", folder / "killed"
    killed.mkdir(parents=True)
    ForkedJob(whole, [*words, f"--checkpoint-directory={whole}"], 1, job_id="0").run(max_attempts=1)
    run, found = DisturbedRun(killed, draw, words, num_workers=1, undisturbed=whole), []
    for _ in range(num_kills):
        owner, name = draw.choice(places)
        # The next validation is up to seven steps away.
        is_after, call = draw.random() < 0.5, draw.randint(1, 1 if name == "evaluate" else 3)
        with run.started(run.job(deed=kill_at(owner, name, after=is_after, call=call))) as job:
            pass
        run.codes(job, {137})
        found.append(f"{'after' if is_after else 'before'} {name.lstrip('_')}")
    run.finish()
    return found


def main() -> None:
    """Print where the run was killed."""
    dataset, folder, num_kills, kind, *flags = sys.argv[1:]
    print("\n".join(prove(kind, Path(dataset), Path(folder), random.Random(0), int(num_kills), *flags)))


if __name__ == "__main__":
    main()
