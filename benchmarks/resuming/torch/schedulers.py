"""Continue PyTorch's schedulers in several orders, and compare the learning rates that follow."""

import copy
import json
import warnings

import torch

warnings.simplefilter("ignore")
schedulers = torch.optim.lr_scheduler
kinds = {
    "CosineAnnealingLR": lambda optimizer, **last: schedulers.CosineAnnealingLR(optimizer, 40, **last),
    "OneCycleLR": lambda optimizer, **last: schedulers.OneCycleLR(optimizer, 1.0, total_steps=40, **last),
    "StepLR": lambda optimizer, **last: schedulers.StepLR(optimizer, 7, **last),
    "LambdaLR": lambda optimizer, **last: schedulers.LambdaLR(optimizer, lambda step: 1 / (1 + step), **last),
}


def build(make, **last):
    """Return an optimizer and its scheduler."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    return optimizer, make(optimizer, **last)


def rates(optimizer, scheduler, steps):
    """Step, and return the learning rates."""
    found = []
    for _ in range(steps):
        optimizer.step()
        found.append(optimizer.param_groups[0]["lr"])
        scheduler.step()
    return found


def both(make, states):
    """Load the optimizer, then the scheduler."""
    optimizer, scheduler = build(make)
    optimizer.load_state_dict(states[0])
    scheduler.load_state_dict(states[1])
    return optimizer, scheduler


def optimizer_before(make, states):
    """Load the optimizer before the scheduler is made, as in pytorch#65342."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    optimizer.load_state_dict(states[0])
    scheduler = make(optimizer)
    scheduler.load_state_dict(states[1])
    return optimizer, scheduler


def last_epoch(make, states):
    """Load the optimizer, and give the number of steps to the scheduler."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    optimizer.load_state_dict(states[0])
    return optimizer, make(optimizer, last_epoch=14)


ways = {
    "state_dict of both": both,
    "the scheduler made after the optimizer was loaded": optimizer_before,
    "last_epoch= in place of its state_dict": last_epoch,
}
cases = {}
for way, load in ways.items():
    wrong = {}
    for name, make in kinds.items():
        optimizer, scheduler = build(make)
        whole = rates(optimizer, scheduler, 30)
        optimizer, scheduler = build(make)
        rates(optimizer, scheduler, 15)
        states = copy.deepcopy((optimizer.state_dict(), scheduler.state_dict()))
        parts = rates(*load(make, states), 15)
        gaps = [abs(a - b) for a, b in zip(whole[15:], parts, strict=True)]
        if max(gaps) > 1e-12:
            wrong[name] = f"{sum(gap > 1e-12 for gap in gaps)} of 15 rates of {name} wrong, by up to {max(gaps):.1g}"
    cases[way] = "; ".join(wrong.values()) or 0
versions = {"torch": torch.__version__}
continued = f"{', '.join(kinds)}"
print(json.dumps({"library": "PyTorch schedulers", "versions": versions, "continued": continued, "cases": cases}))
