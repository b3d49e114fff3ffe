"""Iterate PyTorch's loaders undisturbed and from a position, in `.venv-torch`: a line of JSON per case.

python data_loaders.py CASE...
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    WeightedRandomSampler,
)

from exact_resume import InputError
from exact_resume.trainers import data_loader

torch.set_num_threads(1)
NUM_EXAMPLES, BATCH_SIZE, NUM_EPOCHS = 53, 4, 3


class Noisy(Dataset):  # type: ignore[type-arg]
    """Each example draws from all global generators, and from one of its own."""

    def __init__(self) -> None:
        self.own = {"numpy": np.random.default_rng(0), "torch": torch.Generator()}
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return NUM_EXAMPLES

    def __getitem__(self, index: int) -> Any:
        own = self.own["numpy"].random() + torch.rand(1, generator=self.own["torch"]).item()
        return index, random.random() + np.random.rand() + torch.rand(1).item() + own + self.epoch


class Several(Noisy):
    def __getitems__(self, indices: list[int]) -> Any:
        return [self[index] for index in indices]


class Spawned(Noisy):
    """PyTorch 2.14 cannot send a generator of its own to a process that is not a fork."""

    def __init__(self) -> None:
        super().__init__()
        self.own = {"numpy": np.random.default_rng(0)}

    def __getitem__(self, index: int) -> Any:
        return index, random.random() + np.random.rand() + torch.rand(1).item() + self.own[
            "numpy"
        ].random() + self.epoch


class Lines(IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Iterator[Any]:
        rows = list(range(NUM_EXAMPLES))
        random.shuffle(rows)
        yield from ((row, torch.rand(1).item()) for row in rows)


class OwnSampler:
    """Draws while it is iterated."""

    def __len__(self) -> int:
        return 300

    def __iter__(self) -> Iterator[int]:
        return (int(random.random() * NUM_EXAMPLES) for _ in range(300))


class Counting(OwnSampler):
    count = 0

    def __init__(self) -> None:
        self.count = 0

    def __iter__(self) -> Iterator[int]:
        self.count += 1
        return iter(np.random.default_rng(self.count).permutation(NUM_EXAMPLES).tolist())


class OwnBatches:
    def __len__(self) -> int:
        return 100

    def __iter__(self) -> Iterator[list[int]]:
        return ([random.randrange(NUM_EXAMPLES) for _ in range(3)] for _ in range(100))


class OwnLoader(DataLoader):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return super().__iter__()


def collate(items: list[Any]) -> Any:
    return [row for row, _ in items], [noise for _, noise in items] + [torch.rand(1).item()]


def loader(dataset: type[Any] = Noisy, **options: Any) -> Any:
    return DataLoader(dataset(), collate_fn=collate, **({"batch_size": BATCH_SIZE} | options))


WORKERS = {"num_workers": 2, "persistent_workers": True}
CASES: dict[str, Callable[[], Any]] = {
    "shuffled": lambda: loader(shuffle=True),
    "shuffled, short batch left out": lambda: loader(Several, shuffle=True, drop_last=True),
    "sequential": loader,
    "two processes": lambda: loader(shuffle=True, **WORKERS),
    "two spawned processes": lambda: loader(Spawned, shuffle=True, multiprocessing_context="spawn", **WORKERS),
    "weighted": lambda: loader(sampler=WeightedRandomSampler([*range(1, 54)], 300), **WORKERS),
    "with replacement": lambda: loader(sampler=RandomSampler(Noisy(), replacement=True, num_samples=70)),
    "own sampler": lambda: loader(sampler=OwnSampler()),
    "own batches": lambda: loader(batch_size=1, batch_sampler=OwnBatches()),
    "iterable": lambda: loader(Lines),
    "counting": lambda: loader(sampler=Counting()),
    "own loader": lambda: OwnLoader(Noisy(), batch_size=2),
    "iterable in two processes": lambda: loader(Lines, **WORKERS),
    "out of order": lambda: loader(in_order=False, **WORKERS),
    "no batches": lambda: loader(batch_size=None),
}


def iterate(case: str, epoch: int, first: int) -> list[Any]:
    """Return the batches from a position on, with what a training draws after each; as a new process would."""
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    made, position = data_loader.resumable(CASES[case](), seed=7)
    found = []
    position.first_batch = first
    for position.epoch in range(epoch, NUM_EPOCHS):
        # The epoch that a resume begins in has draws of its own.
        found += [[position.epoch, *batch, torch.rand(1).item(), random.random()] for batch in made]
    return found


def examine(case: str) -> dict[str, Any]:
    try:
        whole = iterate(case, 0, 0)
    except InputError as error:
        return {"refused": str(error)}
    rows = [Counter(row for number, found, *_ in whole if number == epoch for row in found) for epoch in range(3)]
    starts = [number for number, batch in enumerate(whole) if batch[0] == 1]
    resumed = [iterate(case, 1, first) for first in (0, 5, len(starts))]
    random.seed(1)
    torch.manual_seed(1)
    return {
        "is_undisturbed": [each[3:] for each in whole] == [[torch.rand(1).item(), random.random()] for _ in whole],
        "is_resumed": all(
            [each[:3] for each in found] == [each[:3] for each in whole[starts[0] + first :]]
            for found, first in zip(resumed, (0, 5, len(starts)), strict=True)
        ),
        "sizes": [len(each[1]) for each in whole if each[0] == 0],
        "is_each_once": all(each == Counter(range(NUM_EXAMPLES)) for each in rows),
        "num_orders": len({str([each[1] for each in whole if each[0] == epoch]) for epoch in range(3)}),
        "num_noises": len({noise for each in whole for noise in each[2]}),
        "num_drawn": sum(len(each[2]) for each in whole),
    }


def divide() -> dict[str, Any]:
    """Return the examples of each batch of one, two and three workers, as one set each."""
    found = {}
    for sampler in (RandomSampler, SequentialSampler, OwnSampler, DistributedSampler):
        for count in (1, 2, 3):
            batches: list[list[int]] = []
            for rank in range(count):
                options = {"num_replicas": count, "rank": rank} if sampler is DistributedSampler else {}
                one = OwnSampler() if sampler is OwnSampler else sampler(Noisy(), **options)
                made, _ = data_loader.resumable(
                    loader(sampler=one, batch_size=12 // count), seed=3, rank=rank, num_workers=count
                )
                for number, (rows, _) in enumerate(made):
                    batches += [[]] * (rank == 0)
                    batches[number] = batches[number] + rows
            found[f"{sampler.__name__} {count}"] = batches
    for rank in range(2):
        made, _ = data_loader.resumable(loader(batch_size=26), seed=3, rank=rank, num_workers=2)
        found[f"short {rank}"] = [rows for rows, _ in made]
    try:
        data_loader.resumable(CASES["own batches"](), seed=0, rank=0, num_workers=2)
    except InputError as error:
        found["refused"] = [str(error)]
    return found


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(json.dumps(divide() if name == "divided" else examine(name)), flush=True)
