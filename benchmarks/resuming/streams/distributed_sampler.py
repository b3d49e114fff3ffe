"""Continue a DataLoader with DistributedSampler in the middle of an epoch, with torchdata's and without."""

import collections
import json

import torch
import torchdata
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

EPOCH, SIZE = 2, 4
data = torch.arange(64)


def make(loader=DataLoader, sampler=DistributedSampler, set_epoch=True, replicas=2):
    """Return a loader of replica 0, as a process has it at its start."""
    order = sampler(data, num_replicas=replicas, rank=0, shuffle=True, seed=1)
    if set_epoch:
        order.set_epoch(EPOCH)
    return loader(data, SIZE, sampler=order)


def compare(first, second, load=True):
    """Take 3 batches, save, and compare the examples of the rest of the epoch."""
    iterator = iter(first)
    for _ in range(3):
        next(iterator)
    if load:
        second.load_state_dict(first.state_dict())
    rest, later = torch.cat(list(iterator)).tolist(), torch.cat(list(second)).tolist()
    if rest == later:
        return 0
    again = collections.Counter(later) - collections.Counter(rest)
    missing = collections.Counter(rest) - collections.Counter(later)
    return f"{again.total()} examples too often, {missing.total()} too seldom, of {len(rest)}"


stateful = {"loader": StatefulDataLoader}
both = stateful | {"sampler": StatefulDistributedSampler}
cases = {
    "DataLoader, started again": compare(make(), make(), load=False),
    "StatefulDataLoader": compare(make(**stateful), make(**stateful)),
    "StatefulDataLoader, without set_epoch after the start": compare(
        make(**stateful), make(**stateful, set_epoch=False)
    ),
    "StatefulDistributedSampler": compare(make(**both), make(**both)),
    "StatefulDistributedSampler, without set_epoch after the start": compare(
        make(**both), make(**both, set_epoch=False)
    ),
    "StatefulDataLoader, 2 processes and then 1": compare(make(**stateful), make(**stateful, replicas=1)),
}
versions = {"torch": torch.__version__, "torchdata": torchdata.__version__}
continued = "`state_dict` of the loader"
print(json.dumps({"library": "DistributedSampler", "versions": versions, "continued": continued, "cases": cases}))
