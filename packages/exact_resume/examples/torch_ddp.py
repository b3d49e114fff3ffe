"""PyTorch with one process or several: torchrun --nproc-per-node=2 torch_ddp.py FOLDER, killed and run again.

Instead of torchrun, each process may have RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as on Vertex AI.
Begin with `python -m exact_resume rehearse -- python torch_ddp.py FOLDER`.
"""

import hashlib
import os
import sys

import numpy as np
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

import exact_resume

NUM_STEPS, NUM_CLASSES = 600, 3
torch.set_num_threads(1)
torch.manual_seed(0)

# Arms of a spiral.
noise = np.random.default_rng(0)
labels = noise.integers(NUM_CLASSES, size=3000)
radius = noise.random(3000)
angle = 2 * np.pi * (labels / NUM_CLASSES + radius) + 0.2 * noise.normal(size=3000)
points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
x, y = torch.tensor(points, dtype=torch.float32), torch.tensor(labels)

model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=NUM_STEPS)
sampler = exact_resume.Sampler(num_examples=len(x), global_batch_size=64, seed=0)
# Each worker drops out other units.
torch.manual_seed(int(os.environ.get("RANK", 0)))

with exact_resume.run(
    sys.argv[1],
    steps=NUM_STEPS,
    state={"model": model, "optimizer": optimizer, "scheduler": scheduler},
    config={"learning_rate": 0.01},
    sampler=sampler,
    code=[__file__],
    save_every_steps=60,
) as run:
    loader = DataLoader(
        TensorDataset(torch.arange(len(x)), x, y),
        batch_sampler=sampler.batches(start=run.step, stop=NUM_STEPS, worker=run),
        num_workers=2,
        # It draws a seed at each start, which must not come from the global generator.
        generator=torch.Generator(),
    )
    # Its processes start before the process group, whose port they would keep open after a kill.
    batches = iter(loader)
    network: nn.Module = model
    if run.num_workers > 1:
        # Inside `with`, where a lost worker is noticed.
        distributed.init_process_group("gloo")
        network = DistributedDataParallel(model)
    for step, (rows, inputs, targets) in zip(run, batches, strict=False):
        if path := os.environ.get("EXAMPLES_SEEN"):
            with open(f"{path}-{run.num_workers}-{run.rank}", "a") as file:
                print(step, *rows.tolist(), file=file)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(inputs), targets)
        loss.backward()
        optimizer.step()
        scheduler.step()
        run.log(loss=loss.detach())
    model.eval()
    with torch.no_grad():
        run.result(metrics={"accuracy": float((model(x).argmax(dim=1) == y).float().mean())})
    if run.num_workers > 1:
        distributed.destroy_process_group()
print(hashlib.sha256(b"".join(each.detach().numpy().tobytes() for each in model.parameters())).hexdigest())
