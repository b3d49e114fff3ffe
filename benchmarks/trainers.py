"""Measure what exact_resume costs in the trainers of PyTorch: `.venv-torch/bin/python -m benchmarks.trainers`.

The digits of scikit-learn, batch 64: Hugging Face's Trainer, Lightning's and a bare DataLoader, each with and without
exact_resume, taking turns. A figure is the lower quartile of all steps, which other work on the machine has hardly
disturbed; exact_resume may add 100 microseconds to it. The first 50 steps, which start up, do not count. Then how long
a save of 10 million weights and their AdamW blocks the Trainer, at most 1% of the interval that is chosen. Needs
`make venv-torch`, whose interpreter is started otherwise.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.measuring import parse

_TORCH = pathlib.Path(__file__).parents[1] / ".venv-torch" / "bin" / "python"
_BATCH_SIZE, _NUM_STARTING = 64, 50
_Times = list[tuple[float, float]]
"""Of each step: seconds and processor seconds."""
_TRAINERS: dict[str, Callable[[pathlib.Path, int, bool], _Times]] = {}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    if not _TORCH.exists():
        sys.exit("error: benchmarks.trainers needs PyTorch; run: make venv-torch")
    if not pathlib.Path(sys.prefix).samefile(_TORCH.parents[1]):
        os.execv(_TORCH, [str(_TORCH), "-m", "benchmarks.trainers", *sys.argv[1:]])
    options = parse(parser, num_steps=60, rounds=1)
    import torch

    torch.set_num_threads(1)
    for name, train in _TRAINERS.items():
        steps: dict[bool, _Times] = {False: [], True: []}
        for is_exact in (False, True, True, False) * options.rounds:
            with tempfile.TemporaryDirectory() as folder:
                steps[is_exact] += train(pathlib.Path(folder), options.num_steps, is_exact)
        plain, exact = (
            [statistics.quantiles(each)[0] * 1e6 for each in zip(*steps[key], strict=True)] for key in (False, True)
        )
        print(
            f"{name}: {plain[0]:.0f} us per step (processor {plain[1]:.0f} us); exact_resume adds"
            f" {exact[0] - plain[0]:+.0f} us (processor {exact[1] - plain[1]:+.0f} us; 100 us allowed)",
            flush=True,
        )
    with tempfile.TemporaryDirectory() as folder:
        _save(pathlib.Path(folder), options.num_steps // 10)


class _Steps:
    """The times of the steps after those that start up."""

    def __init__(self) -> None:
        self._last, self._num_done = (0.0, 0.0), 0
        self.found: _Times = []

    def note(self) -> None:
        now = time.perf_counter(), time.process_time()
        self._num_done += 1
        if self._num_done > _NUM_STARTING:
            self.found.append((now[0] - self._last[0], now[1] - self._last[1]))
        self._last = time.perf_counter(), time.process_time()


def _digits() -> Any:
    import torch
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)


def _hugging_face(folder: pathlib.Path, num_steps: int, is_exact: bool, *, num_units: int = 32, **given: Any) -> _Times:
    import torch
    import transformers

    import exact_resume

    class Network(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self._layers = torch.nn.Sequential(
                torch.nn.Linear(64, num_units), torch.nn.Linear(num_units, num_units), torch.nn.Linear(num_units, 10)
            )

        def forward(self, images: Any, labels: Any) -> Any:
            logits = self._layers(images)
            return torch.nn.functional.cross_entropy(logits, labels), logits

    steps = _Steps()

    class Noting(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            steps.note()

    noting, (images, labels) = Noting(), _digits()
    arguments = transformers.TrainingArguments(
        str(folder),
        max_steps=num_steps,
        per_device_train_batch_size=_BATCH_SIZE,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        logging_strategy="no",
    )
    data = torch.utils.data.StackDataset(images=images, labels=labels)
    trainer = transformers.Trainer(Network(), arguments, train_dataset=data, callbacks=[noting])
    if is_exact:
        exact_resume.hugging_face(trainer, folder, stateless=[noting], **given).train()
    else:
        trainer.train()
    return steps.found


def _lightning(folder: pathlib.Path, num_steps: int, is_exact: bool) -> _Times:
    import lightning
    import torch

    import exact_resume

    steps = _Steps()

    class Module(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self._layers = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return torch.nn.functional.cross_entropy(self._layers(batch[0]), batch[1])

        def on_train_batch_end(self, *_: Any) -> None:
            steps.note()

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters())

    trainer = lightning.Trainer(
        max_steps=num_steps,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        callbacks=[exact_resume.LightningCallback(folder)] if is_exact else [],
    )
    trainer.fit(Module(), _loader())
    return steps.found


def _data_loader(_: pathlib.Path, num_steps: int, is_exact: bool) -> _Times:
    from exact_resume.trainers import data_loader

    steps, loader = _Steps(), _loader()
    if is_exact:
        loader, position = data_loader.resumable(loader, seed=0)
    for epoch in range(num_steps // len(loader) + 1):
        if is_exact:
            position.epoch = epoch
        for _batch in loader:
            steps.note()
    return steps.found


_TRAINERS |= {"transformers": _hugging_face, "lightning": _lightning, "DataLoader": _data_loader}


def _loader() -> Any:
    import torch

    data = torch.utils.data.TensorDataset(*_digits())
    return torch.utils.data.DataLoader(data, batch_size=_BATCH_SIZE, shuffle=True)


def _save(folder: pathlib.Path, num_steps: int) -> None:
    from exact_resume.checkpoints.async_writer import best_interval

    _hugging_face(folder, _NUM_STARTING + num_steps, True, num_units=3150, save_every_steps=20)
    lines: Iterable[Any] = (json.loads(line) for path in folder.glob("events/*.jsonl") for line in path.open())
    saves = [each for each in lines if each["event"] == "save"]
    pause = statistics.median(each["seconds"] for each in saves)
    interval = best_interval(pause)
    print(
        f"a save of {saves[0]['num_bytes'] / 1e6:.0f} MB blocks the Trainer for {pause * 1e3:.0f} ms:"
        f" {pause / interval:.2%} at the interval of {interval:.0f} s that is chosen (1% allowed)"
    )


if __name__ == "__main__":
    main()
