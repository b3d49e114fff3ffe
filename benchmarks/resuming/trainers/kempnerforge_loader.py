"""The shape of KempnerForge before its repair: the loader can be saved, and the program does not give it to `save`.

https://github.com/KempnerInstitute/KempnerForge/issues/51
"""

import os
import time

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import torch
from safetensors.torch import save_file
from torch.utils.data import DistributedSampler, TensorDataset
from torchdata.stateful_dataloader import StatefulDataLoader

torch.set_num_threads(1)
torch.manual_seed(1)
generator = torch.Generator().manual_seed(0)
data = TensorDataset(torch.arange(64), torch.randn(64, 4, generator=generator))
sampler = DistributedSampler(data, 1, 0, shuffle=True)
loader = StatefulDataLoader(data, 8, sampler=sampler)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(net.parameters(), 0.01)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0, 64)
objects = {"net": net, "optimizer": optimizer, "schedule": schedule}
path, step = os.environ["AIP_CHECKPOINT_DIR"] + "/last.pt", 0
os.makedirs(os.path.dirname(path), exist_ok=True)
if os.path.exists(path):
    state = torch.load(path, weights_only=False)
    step = state.pop("step")
    for name, each in objects.items():
        each.load_state_dict(state[name])
for epoch in range(step // len(loader), 8):
    sampler.set_epoch(epoch)
    for index, x in loader:
        loss = ((net(x)[:, 0] - x.sum(1)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        rate = schedule.get_last_lr()[0]
        optimizer.step()
        schedule.step()
        time.sleep(0.05)
        step += 1
        print(f"step {step}: loss={loss.item()} learning_rate={rate} examples={index.tolist()}", flush=True)
        if step % 5 == 0:
            torch.save({"step": step, **{name: each.state_dict() for name, each in objects.items()}}, path + ".new")
            os.replace(path + ".new", path)
os.makedirs(os.environ["AIP_MODEL_DIR"], exist_ok=True)
save_file(net.state_dict(), os.environ["AIP_MODEL_DIR"] + "/model.safetensors")
