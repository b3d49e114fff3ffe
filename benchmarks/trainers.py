"""Measure what exact_resume costs in the trainers of PyTorch: `.venv-torch/bin/python -m benchmarks.trainers`.

The digits of scikit-learn, batch 64: Hugging Face's Trainer, Lightning's and a bare DataLoader, each with and without
exact_resume, in two threads of one process that take turns of ten steps, so that both see the same machine. A figure is
a quartile over the fastest fourth of all pairs of turns, which other work on the machine has hardly disturbed;
exact_resume may add 100 microseconds to a step. The first turns, which start up, do not count, nor do the first two
steps of a turn. Then how long a save of 10 million weights and their AdamW blocks the Trainer, at most 1% of the
interval that is chosen. Needs `make venv-torch`, whose interpreter is started otherwise.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.measuring import parse

_TORCH = pathlib.Path(__file__).parents[1] / ".venv-torch" / "bin" / "python"
_BATCH_SIZE, _NUM_STARTING, _TURN = 64, 50, 10
_Times = list[tuple[float, float]]
"""Of each step: seconds and processor seconds."""
_TRAINERS: dict[str, Callable[[pathlib.Path, int, bool], None]] = {}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-steps", type=int, default=4000)
    if not _TORCH.exists():
        sys.exit("error: benchmarks.trainers needs PyTorch; run: make venv-torch")
    if not pathlib.Path(sys.prefix).samefile(_TORCH.parents[1]):
        os.execv(_TORCH, [str(_TORCH), "-m", "benchmarks.trainers", *sys.argv[1:]])
    options = parse(parser, num_steps=120)
    import torch

    torch.set_num_threads(1)
    for name, train in _TRAINERS.items():
        plain, exact = (_medians(found) for found in _in_turns(train, options.num_steps))
        pairs = sorted(zip(plain, exact, strict=False), key=lambda pair: pair[0][0] + pair[1][0])
        pairs = pairs[: len(pairs) // 4]
        figures = [[each[0][unit] for each in pairs] for unit in (0, 1)] + [
            [each[1][unit] - each[0][unit] for each in pairs] for unit in (0, 1)
        ]
        wall, processor, added, added_processor = (
            " to ".join(f"{quartile * 1e6:.0f}" for quartile in statistics.quantiles(each)) for each in figures
        )
        print(
            f"{name}: {wall} us per step (processor {processor}); exact_resume adds {added} us (processor"
            f" {added_processor}; 100 us allowed); quartiles of the {len(pairs)} fastest pairs of {_TURN} steps",
            flush=True,
        )
    with tempfile.TemporaryDirectory() as folder:
        _save(pathlib.Path(folder))


class _Turns:
    """Two threads that run by turns."""

    def __init__(self) -> None:
        self._whose, self._changed, self._ended = False, threading.Condition(), set[bool]()

    def wait(self, side: bool) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._whose is side)

    def give(self, side: bool, *, ends: bool = False) -> None:
        with self._changed:
            if ends:
                self._ended.add(side)
            if (not side) not in self._ended:
                self._whose = not side
                self._changed.notify_all()
        if not ends:
            self.wait(side)


_thread = threading.local()
"""The steps of the thread."""


class _Steps:
    """The times of the steps of one side."""

    def __init__(self, turns: _Turns, side: bool) -> None:
        self._turns, self._side, self._last = turns, side, (0.0, 0.0)
        self.found: _Times = []

    def note(self) -> None:
        now = time.perf_counter(), time.thread_time()
        self.found.append((now[0] - self._last[0], now[1] - self._last[1]))
        if len(self.found) % _TURN == 0:
            self._turns.give(self._side)
        self._last = time.perf_counter(), time.thread_time()


def _in_turns(train: Callable[[pathlib.Path, int, bool], None], num_steps: int) -> tuple[_Times, _Times]:
    """Return the times without exact_resume, and with it, which wants the main thread."""
    turns = _Turns()
    sides = {is_exact: _Steps(turns, is_exact) for is_exact in (False, True)}

    def run(is_exact: bool) -> None:
        _thread.steps = sides[is_exact]
        turns.wait(is_exact)
        try:
            with tempfile.TemporaryDirectory() as folder:
                train(pathlib.Path(folder), num_steps, is_exact)
        finally:
            turns.give(is_exact, ends=True)

    other = threading.Thread(target=run, args=(False,), daemon=True)
    other.start()
    run(True)
    other.join()
    return sides[False].found, sides[True].found


def _medians(times: _Times) -> list[tuple[float, float]]:
    """Return the median of each turn, of its seconds and its processor seconds."""
    turns = [times[first + 2 : first + _TURN] for first in range(_NUM_STARTING, len(times) - _TURN + 1, _TURN)]
    return [
        (statistics.median(each[0] for each in turn), statistics.median(each[1] for each in turn)) for turn in turns
    ]


def _digits() -> Any:
    import torch
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)


def _hugging_face(folder: pathlib.Path, num_steps: int, is_exact: bool, *, num_units: int = 32, **given: Any) -> None:
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

    class Noting(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            _thread.steps.note()

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


def _lightning(folder: pathlib.Path, num_steps: int, is_exact: bool) -> None:
    import lightning
    import torch

    import exact_resume

    class Module(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self._layers = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return torch.nn.functional.cross_entropy(self._layers(batch[0]), batch[1])

        def on_train_batch_end(self, *_: Any) -> None:
            _thread.steps.note()

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


def _data_loader(_: pathlib.Path, num_steps: int, is_exact: bool) -> None:
    from exact_resume.trainers import data_loader

    loader = _loader()
    if is_exact:
        loader, position = data_loader.resumable(loader, seed=0)
    for epoch in range(num_steps // len(loader) + 1):
        if is_exact:
            position.epoch = epoch
        for _batch in loader:
            _thread.steps.note()


_TRAINERS |= {"transformers": _hugging_face, "lightning": _lightning, "DataLoader": _data_loader}


def _loader() -> Any:
    import torch

    data = torch.utils.data.TensorDataset(*_digits())
    return torch.utils.data.DataLoader(data, batch_size=_BATCH_SIZE, shuffle=True)


def _save(folder: pathlib.Path) -> None:
    from exact_resume.checkpoints.async_writer import best_interval

    _thread.steps = _Steps(_Turns(), True)
    # Fewer steps than a turn, which no other turn would give back.
    _hugging_face(folder, _TURN - 1, True, num_units=3150, save_every_steps=3)
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
