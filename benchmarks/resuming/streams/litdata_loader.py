"""Save litData's StreamingDataLoader in the middle of an epoch, and continue with the same and with something else."""

import collections
import contextlib
import importlib.metadata
import json
import sys
import tempfile

import litdata
import torch
from litdata.streaming import Cache


def loader(folder, workers=0, size=4):
    """Return a shuffled loader of the folder."""
    dataset = litdata.StreamingDataset(folder, shuffle=True, seed=1, drop_last=False)
    return litdata.StreamingDataLoader(dataset, batch_size=size, num_workers=workers)


def rest(folder, first, again):
    """Take 5 batches, save, and compare the examples that another loader yields in the rest of the epoch."""
    one, other = loader(folder, **first), loader(folder, **again)
    iterator, seen, rest = iter(one), [], []
    for _ in range(5):
        seen += next(iterator).tolist()
    state = one.state_dict()
    for batch in iterator:
        rest += batch.tolist()
    try:
        other.load_state_dict(state)
        later = [number for batch in other for number in batch.tolist()]
    except Exception as error:
        return f"refused: {type(error).__name__}"
    if later == rest:
        return 0
    counts = collections.Counter(seen + later)
    twice, never = sum(count > 1 for count in counts.values()), 100 - len(counts)
    return f"{twice} examples twice, {never} never" if twice or never else "another order"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        cache = Cache(folder, chunk_size=10)
        for number in range(100):
            cache[number] = torch.tensor(number)
        cache.done()
        cache.merge()
        cases = {
            "0 workers": rest(folder, {}, {}),
            "2 workers": rest(folder, {"workers": 2}, {"workers": 2}),
            "2 workers, then 1": rest(folder, {"workers": 2}, {"workers": 1}),
            "1 worker, then 2": rest(folder, {"workers": 1}, {"workers": 2}),
            "batch size 4, then 8": rest(folder, {}, {"size": 8}),
            "batch size 4, then 8, 2 workers": rest(folder, {"workers": 2}, {"workers": 2, "size": 8}),
        }
    versions = {name: importlib.metadata.version(name) for name in ("litdata", "torch")}
    continued = "`StreamingDataLoader.state_dict`"
    print(json.dumps({"library": "litData", "versions": versions, "continued": continued, "cases": cases}))
