"""Save the state of Grain's loader in the middle of an epoch, and continue with the same and with something else."""

import importlib.metadata
import json
import logging

import absl.flags
import grain
import numpy as np

logging.disable(logging.CRITICAL)
absl.flags.FLAGS(["program"])  # Grain's workers read flags


class Numbers:
    """A source of rows."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        """Return their number."""
        return len(self.rows)

    def __getitem__(self, index):
        """Return a row."""
        return self.rows[index]

    def __repr__(self):
        """Describe the source as NumPy does, which leaves the middle out."""
        return f"Numbers({self.rows!r})"


class Noise(grain.transforms.RandomMap):
    """Adds a random number of Grain's generator."""

    def random_map(self, element, rng):
        """Return row and number."""
        return np.array([element, rng.random()])


def loader(workers=0, rows=None):
    """Return a loader of shuffled batches with random numbers."""
    rows = np.arange(2000) if rows is None else rows
    sampler = grain.samplers.IndexSampler(
        len(rows), num_epochs=1, shard_options=grain.sharding.NoSharding(), shuffle=True, seed=1
    )
    return grain.DataLoader(
        data_source=Numbers(rows),
        sampler=sampler,
        operations=[Noise(), grain.transforms.Batch(50)],
        worker_count=workers,
    )


def dataset(workers=0):
    """Return the same as a MapDataset."""
    data = grain.MapDataset.source(np.arange(2000)).seed(1).shuffle().random_map(Noise()).batch(50).to_iter_dataset()
    return data.mp_prefetch(grain.multiprocessing.MultiprocessingOptions(num_workers=workers)) if workers else data


def rest(make, again):
    """Take 7 batches, save, and compare what another iterator yields after it was given the state."""
    iterator, other = iter(make()), iter(again())
    for _ in range(7):
        next(iterator)
    state = iterator.get_state()
    try:
        other.set_state(state)
        later = list(other)
    except Exception as error:
        return f"refused: {type(error).__name__}"
    return 0 if np.array_equal(np.array(list(iterator)), np.array(later)) else "other batches"


changed = np.arange(2000)
changed[500:1500] = -1
if __name__ == "__main__":
    cases = {
        "DataLoader": rest(loader, loader),
        "DataLoader, 2 workers": rest(lambda: loader(2), lambda: loader(2)),
        "DataLoader, 2 workers and then 0": rest(lambda: loader(2), loader),
        "MapDataset": rest(dataset, dataset),
        "MapDataset, mp_prefetch with 2 workers": rest(lambda: dataset(2), lambda: dataset(2)),
        "MapDataset, 2 workers and then 1": rest(lambda: dataset(2), lambda: dataset(1)),
    }
    answer = rest(loader, lambda: loader(rows=changed))
    cases["other rows in the middle of the source"] = "accepted silently" if answer == "other batches" else answer
    versions = {"grain": importlib.metadata.version("grain")}
    continued = "`get_state` and `set_state` of its iterators"
    print(json.dumps({"library": "Grain", "versions": versions, "continued": continued, "cases": cases}))
