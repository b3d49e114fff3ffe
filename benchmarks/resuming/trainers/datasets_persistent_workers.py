"""datasets' iterable in a StatefulDataLoader with persistent workers, whose state a checkpoint has.

https://github.com/huggingface/datasets/issues/7447
"""

import os
import time

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1", "CUDA_VISIBLE_DEVICES": ""}
import datasets
import torch
from safetensors.torch import save_file
from torchdata.stateful_dataloader import StatefulDataLoader

EPOCHS = 4


def main():
    """Train; a worker of the loader imports this file, too."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rows = datasets.Dataset.from_dict({"index": list(range(64))}).to_iterable_dataset(num_shards=4)
    loader = StatefulDataLoader(rows, 4, num_workers=2, persistent_workers=True)
    net = torch.nn.Linear(64, 1)
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    path, first, step = os.environ["AIP_CHECKPOINT_DIR"] + "/last.pt", 0, 0
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path):
        state = torch.load(path, weights_only=False)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        loader.load_state_dict(state["loader"])
        first, step = state["epoch"], state["step"]
    for epoch in range(first, EPOCHS):
        for batch in loader:
            index = torch.as_tensor(batch["index"])
            loss = ((net(torch.nn.functional.one_hot(index, 64).float())[:, 0] - index / 64) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.05)
            step += 1
            print(f"step {step}: loss={loss.item()} examples={index.tolist()}", flush=True)
            if step % 6 == 0:
                state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
                torch.save({**state, "epoch": epoch, "step": step}, path + ".new")
                os.replace(path + ".new", path)
    os.makedirs(os.environ["AIP_MODEL_DIR"], exist_ok=True)
    save_file(net.state_dict(), os.environ["AIP_MODEL_DIR"] + "/model.safetensors")


if __name__ == "__main__":
    main()
