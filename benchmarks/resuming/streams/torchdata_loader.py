"""Save torchdata's StatefulDataLoader in the middle of an epoch, and compare what another one yields."""

import json

import torch
import torchdata
from torchdata.stateful_dataloader import StatefulDataLoader


class Noisy(torch.utils.data.Dataset):
    """Examples with a random number, as of an augmentation."""

    def __init__(self, noise):
        self.noise = noise

    def __len__(self):
        """Return the number of examples."""
        return 64

    def __getitem__(self, index):
        """Return example and random number."""
        return torch.tensor([index, torch.rand([]) if self.noise else 0])


def loader(noise=False, workers=0, size=4):
    """Return a shuffled loader, as a new process would with the same seed."""
    torch.manual_seed(0)
    return StatefulDataLoader(Noisy(noise), size, shuffle=True, num_workers=workers)


def rest(after=5, again=None, epochs=1, **options):
    """Take batches, save, and compare what a new loader yields in this epoch, or in this and the next."""
    first, second = loader(**options), loader(**options | (again or {}))
    iterator = iter(first)
    for _ in range(after):
        next(iterator)
    later = [] if next(iterator, None) is None else None
    state = first.state_dict()
    later = list(iterator) if later is None else list(first)
    for _ in range(epochs - 1):
        later += list(first)
    try:
        second.load_state_dict(state)
        found = [batch for _ in range(epochs) for batch in second]
    except (AssertionError, ValueError) as error:
        return f"refused: {type(error).__name__}"
    if len(found) != len(later):
        return f"{len(found)} batches in place of {len(later)}"
    indices = [torch.equal(a[:, 0], b[:, 0]) for a, b in zip(later, found, strict=True)]
    return 0 if all(map(torch.equal, later, found)) else "other random numbers" if all(indices) else "another order"


if __name__ == "__main__":
    cases = {
        "the order": rest(),
        "the order, 2 workers": rest(workers=2),
        "the order of this epoch and the next": rest(epochs=2),
        "random numbers of __getitem__": rest(noise=True),
        "random numbers of __getitem__, 2 workers": rest(noise=True, workers=2),
        "saved at the end of an epoch": rest(after=16, epochs=2),
        "2 workers, then 1": rest(workers=2, again={"workers": 1}),
        "2 workers, then 0": rest(workers=2, again={"workers": 0}),
    }
    answer = rest(again={"size": 8})
    cases["another batch size"] = answer if answer == 0 or "refused" in str(answer) else f"accepted: {answer}"
    versions = {"torchdata": torchdata.__version__, "torch": torch.__version__}
    continued = "`StatefulDataLoader.state_dict`"
    print(json.dumps({"library": "torchdata", "versions": versions, "continued": continued, "cases": cases}))
