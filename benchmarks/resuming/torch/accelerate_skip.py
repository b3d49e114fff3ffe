"""Save with Accelerate in mid-epoch, load in a new process' way, skip the batches, and compare what follows."""

import collections
import json
import os
import tempfile
import warnings

os.environ |= {"CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "1"}
import accelerate
import torch
from accelerate.utils import DataLoaderConfiguration

warnings.simplefilter("ignore")
torch.set_num_threads(1)
DATA = torch.arange(64)


def start(**options):
    """Return accelerator and loader, as a program has them at its start."""
    accelerate.utils.set_seed(1)
    accelerator = accelerate.Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**options))
    return accelerator, accelerator.prepare(torch.utils.data.DataLoader(DATA, 4, shuffle=True))


def compare(epoch, skip=True, **options):
    """Save after 5 batches of an epoch, and compare the examples of the rest of this epoch."""
    with tempfile.TemporaryDirectory() as folder:
        accelerator, loader = start(**options)
        for number in range(epoch + 1):
            loader.set_epoch(number)
            rest = []
            for step, batch in enumerate(loader):
                if number == epoch and step >= 5:
                    rest += batch.tolist()
                if number == epoch and step == 4:
                    accelerator.save_state(folder)
        accelerator, loader = start(**options)
        accelerator.load_state(folder)
        loader.set_epoch(epoch)
        again = accelerator.skip_first_batches(loader, 5) if skip else loader
        later = [number for batch in again for number in batch.tolist()]
    if later == rest:
        return 0
    twice = (collections.Counter(later) - collections.Counter(rest)).total()
    return (
        f"{twice} of {len(rest)} examples are others"
        if len(later) == len(rest)
        else f"{len(later)} examples in place of {len(rest)}"
    )


stateful = {"use_stateful_dataloader": True}
cases = {
    "epoch 1, skip_first_batches": compare(0),
    "epoch 2, skip_first_batches": compare(1),
    "epoch 2, use_seedable_sampler, set_epoch": compare(1, use_seedable_sampler=True),
    "epoch 2, use_stateful_dataloader": compare(1, skip=False, **stateful),
    "epoch 2, both": compare(1, skip=False, use_seedable_sampler=True, **stateful),
}
versions = {"accelerate": accelerate.__version__, "torch": torch.__version__}
continued = "`save_state`, `load_state`, in mid-epoch"
print(json.dumps({"library": "Accelerate", "versions": versions, "continued": continued, "cases": cases}))
