"""Accelerate as in its example of checkpoints: `load_state` of the newest folder, then `skip_first_batches`."""

import os
import time

os.environ |= {"CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "1"}
import accelerate
import torch

torch.set_num_threads(1)
accelerate.utils.set_seed(1)
generator = torch.Generator().manual_seed(0)
data = torch.utils.data.TensorDataset(torch.arange(64), torch.randn(64, 4, generator=generator))
net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0, 48)
accelerator = accelerate.Accelerator(cpu=True)
loader = torch.utils.data.DataLoader(data, 8, shuffle=True)
net, optimizer, loader, schedule = accelerator.prepare(net, optimizer, loader, schedule)

folder, first_epoch, skipped, step = os.environ["AIP_CHECKPOINT_DIR"], 0, 0, 0
os.makedirs(folder, exist_ok=True)
if found := sorted((each for each in os.scandir(folder) if each.is_dir()), key=lambda each: each.stat().st_ctime):
    accelerator.load_state(found[-1].path)
    step = int(found[-1].name.removeprefix("step_"))
    first_epoch, skipped = divmod(step, len(loader))
for epoch in range(first_epoch, 6):
    net.train()
    rest = accelerator.skip_first_batches(loader, skipped) if epoch == first_epoch and skipped else loader
    for index, x in rest:
        loss = ((net(x)[:, 0] - x.sum(1)) ** 2).mean()
        accelerator.backward(loss)
        rate = optimizer.param_groups[0]["lr"]
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        time.sleep(0.05)
        step += 1
        print(f"step {step}: loss={loss.item()} learning_rate={rate} examples={index.tolist()}", flush=True)
        if step % 5 == 0:
            accelerator.save_state(f"{folder}/step_{step}")
accelerator.save_model(net, os.environ["AIP_MODEL_DIR"])
