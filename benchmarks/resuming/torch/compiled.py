"""Save a model of torch.compile, and load it into a compiled and a plain one; train on."""

import copy
import json

import torch
from sklearn.datasets import load_digits

torch.set_num_threads(1)
examples, labels = load_digits(return_X_y=True)
examples, labels = torch.tensor(examples / 16, dtype=torch.float32), torch.tensor(labels)


def build(wrapped):
    """Return model and optimizer."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(32, 10)]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    # This backend needs no C++ compiler.
    return torch.compile(model, backend="aot_eager") if wrapped else model, optimizer


def train(parts, steps):
    """Train on all examples."""
    model, optimizer = parts
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(examples), labels).backward()
        optimizer.step()
    return parts


def weights(model):
    """Return all weights."""
    return torch.cat([each.flatten() for each in model.parameters()]).detach()


cases = {}
for name, (before, after) in {
    "compiled, then compiled": (True, True),
    "compiled, then not": (True, False),
    "not, then compiled": (False, True),
}.items():
    whole, first = train(build(before), 20), train(build(before), 10)
    states, numbers = copy.deepcopy([each.state_dict() for each in first]), torch.get_rng_state()
    # The generator of the whole training after its first ten steps.
    build(before)
    train(build(before), 10)
    parts = build(after)
    try:
        parts[0].load_state_dict(states[0])
    except RuntimeError:
        prefix = {key.split(".")[0] for key in states[0]} - {key.split(".")[0] for key in parts[0].state_dict()}
        cases[name] = (
            f"refused: RuntimeError, keys begin with {prefix.pop()}"
            if before
            else "refused: RuntimeError, keys have no prefix"
        )
        continue
    parts[1].load_state_dict(states[1])
    torch.set_rng_state(numbers)
    cases[name] = float((weights(whole[0]) - weights(train(parts, 10)[0])).abs().max())
versions = {"torch": torch.__version__}
continued = "`state_dict` of a `torch.compile` model, and the generator"
print(json.dumps({"library": "torch.compile", "versions": versions, "continued": continued, "cases": cases}))
