"""Accelerate with one process or several: accelerate launch accelerate_digits.py FOLDER, killed and run again.

Begin with `python -m exact_resume rehearse -- python accelerate_digits.py FOLDER`.
"""

import hashlib
import os
import sys

import torch
from accelerate import Accelerator
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import exact_resume

NUM_STEPS, BATCH_SIZE = 300, 64
torch.set_num_threads(1)
torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
data = TensorDataset(torch.arange(len(labels)), torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels))
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(64, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=NUM_STEPS)
sampler = exact_resume.Sampler(num_examples=1500, global_batch_size=BATCH_SIZE, seed=0)
accelerator = Accelerator(cpu=True)
network, optimizer = accelerator.prepare(model, optimizer)

folder = sys.argv[1] if sys.argv[1:] else os.environ["AIP_CHECKPOINT_DIR"]
with exact_resume.run(
    folder,
    steps=NUM_STEPS,
    state={"model": model, "optimizer": optimizer, "schedule": schedule},
    config={"learning_rate": 0.01},
    sampler=sampler,
    code=[__file__],
    save_every_steps=30,
) as run:
    batches = sampler.batches(start=run.step, stop=NUM_STEPS, worker=run)
    loader = DataLoader(data, batch_sampler=batches, generator=torch.Generator())
    for step, batch in zip(run, loader, strict=False):
        rows, inputs, targets = (each.to(accelerator.device) for each in batch)
        if path := os.environ.get("EXAMPLES_SEEN"):
            with open(f"{path}-{run.num_workers}-{run.rank}", "a") as file:
                print(step, *rows.tolist(), file=file)
        loss = torch.nn.functional.cross_entropy(network(inputs), targets)
        accelerator.backward(loss)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        run.log(loss=loss)
    model.eval()
    correct = model(data.tensors[1][1500:].to(accelerator.device)).argmax(dim=1).cpu() == data.tensors[2][1500:]
    run.result(metrics={"accuracy": float(correct.float().mean())})
print(hashlib.sha256(b"".join(each.cpu().numpy().tobytes() for each in model.state_dict().values())).hexdigest())
