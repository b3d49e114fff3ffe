"""Continue a mixed-precision training with and without the state of its GradScaler."""

import copy
import json

import torch
from sklearn.datasets import load_digits

torch.set_num_threads(1)
examples, labels = load_digits(return_X_y=True)
examples, labels = torch.tensor(examples / 16, dtype=torch.float32), torch.tensor(labels)


def build():
    """Return model, optimizer and scaler; the scale is one that float16 overflows with."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=7)
    return model, torch.optim.SGD(model.parameters(), 0.5), scaler


def train(parts, steps):
    """Train on all examples; the gradients pass through float16."""
    model, optimizer, scaler = parts
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = torch.nn.functional.cross_entropy(model(examples), labels)
        scaler.scale(loss).backward()
        for each in model.parameters():
            each.grad = each.grad.half().float()
        scaler.step(optimizer)
        scaler.update()
    return parts


whole, first = train(build(), 40), train(build(), 25)
state = copy.deepcopy([each.state_dict() for each in first])
cases = {}
for name, count in {"with the scaler": 3, "without the scaler": 2}.items():
    parts = build()
    for each, content in zip(parts[:count], state[:count], strict=True):
        each.load_state_dict(content)
    train(parts, 15)
    gap = max(
        float((a - b).detach().abs().max()) for a, b in zip(whole[0].parameters(), parts[0].parameters(), strict=True)
    )
    cases[name] = gap
    if gap:
        skipped = build()[2].get_scale() / state[2]["scale"]
        cases[name] = f"the scale starts {skipped:.0f} times too high, and steps are skipped"
versions = {"torch": torch.__version__}
continued = "`state_dict` of model, optimizer and `GradScaler`"
print(json.dumps({"library": "PyTorch GradScaler", "versions": versions, "continued": continued, "cases": cases}))
