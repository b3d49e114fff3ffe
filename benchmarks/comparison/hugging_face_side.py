"""Hugging Face's Trainer by itself and with exact_resume: prints lines for `python -m benchmarks.comparison`."""

import functools
import os
import sys
from pathlib import Path
from typing import Any

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

import exact_resume
from benchmarks.comparison import faults
from benchmarks.comparison.faults import Notes, Tool


class _Network(torch.nn.Module):  # type: ignore[misc]
    """Remembers the examples of its last batch."""

    def __init__(self) -> None:
        super().__init__()
        drop = torch.nn.Dropout(0.2)
        self._layers = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), drop, torch.nn.Linear(32, 10))

    def forward(self, images: Any, labels: Any, rows: Any) -> Any:
        """Return the loss and the logits."""
        self.rows = rows
        logits = self._layers(images)
        return torch.nn.functional.cross_entropy(logits, labels), logits


class _Noting(TrainerCallback):  # type: ignore[misc]
    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def on_step_begin(self, *_: Any, model: Any, **__: Any) -> None:
        self._notes.begin([*model.state_dict().values()])

    def on_step_end(self, *_: Any, model: Any, **__: Any) -> None:
        self._notes.step(model.rows.tolist(), [*model.state_dict().values()])


def _train(folder: Path, notes: Notes, *, is_exact: bool) -> float:
    # With several threads, the last bits of a sum may differ from run to run.
    torch.set_num_threads(1)
    torch.manual_seed(0)
    images, labels = map(torch.from_numpy, faults.digits())
    examples = [
        {"images": image, "labels": label, "rows": row}
        for row, (image, label) in enumerate(zip(images, labels, strict=True))
    ]
    arguments = TrainingArguments(
        str(folder),
        num_train_epochs=faults.EPOCHS,
        per_device_train_batch_size=faults.BATCH_SIZE,
        learning_rate=0.005,
        save_steps=500 if is_exact else faults.SAVE_EVERY,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    noting = _Noting(notes)
    network = _Network()
    trainer = Trainer(network, arguments, train_dataset=examples, callbacks=[noting])
    if is_exact:
        exact_resume.hugging_face(
            trainer, folder, stateless=[noting], code=[__file__], save_every_steps=faults.SAVE_EVERY
        ).train()
    else:
        trainer.train(resume_from_checkpoint=any(folder.glob("checkpoint-*")))
    network.eval()
    return float(network(images, labels, None)[0].detach())


def _newest(folder: Path) -> Path:
    return max(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))


if __name__ == "__main__":
    own = functools.partial(_train, is_exact=False)
    exact = functools.partial(_train, is_exact=True)
    sys.exit(
        faults.measure(
            [
                Tool(name="Trainer, resume_from_checkpoint", train=own, newest=_newest),
                Tool(name="exact_resume.hugging_face", train=exact, newest=lambda folder: max(folder.glob("step-*"))),
            ]
        )
    )
