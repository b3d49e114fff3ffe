"""Lightning with one process or several: python lightning_digits.py FOLDER [DEVICES], killed and run again.

Or torchrun --nproc-per-node=2 lightning_digits.py FOLDER 2.
Begin with `python -m exact_resume rehearse -- python lightning_digits.py FOLDER`.
"""

import hashlib
import os
import sys

import lightning
import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import exact_resume

folder = sys.argv[1] if sys.argv[1:] else os.environ["AIP_CHECKPOINT_DIR"]
devices = int(sys.argv[2]) if sys.argv[2:] else 1
torch.set_num_threads(1)
lightning.seed_everything(0, verbose=False)
images, labels = load_digits(return_X_y=True)
data = TensorDataset(torch.arange(len(labels)), torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels))
training, validation = torch.utils.data.Subset(data, range(1500)), torch.utils.data.Subset(data, range(1500, 1797))


class Digits(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(64, 10)
        )

    def training_step(self, batch, batch_idx):
        rows, inputs, targets = batch
        if path := os.environ.get("EXAMPLES_SEEN"):
            with open(f"{path}-{self.trainer.world_size}-{self.global_rank}", "a") as file:
                print(self.global_step, *rows.tolist(), file=file)
        loss = torch.nn.functional.cross_entropy(self.layers(inputs), targets)
        self.log("loss", loss, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, batch_idx):
        accuracy = (self.layers(batch[1]).argmax(dim=1) == batch[2]).float().mean()
        self.log("accuracy", accuracy, sync_dist=True)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        return [optimizer], [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)]


run = exact_resume.LightningCallback(folder, monitor="accuracy", mode="max", code=[__file__], save_every_steps=25)
trainer = lightning.Trainer(
    max_epochs=12, accelerator="cpu", devices=devices, callbacks=[run], logger=False, enable_checkpointing=False
)
model = Digits()
# The global batch is 64 for any number of devices.
trainer.fit(model, DataLoader(training, 64 // devices, shuffle=True), DataLoader(validation, 64))
print(hashlib.sha256(b"".join(each.numpy().tobytes() for each in model.state_dict().values())).hexdigest())
