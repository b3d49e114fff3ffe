"""Stop Lightning in mid-epoch, resume with `ckpt_path`, and compare examples and weights: plain loader and stateful."""

import collections
import json
import logging
import os
import tempfile
import warnings

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torchdata.stateful_dataloader import StatefulDataLoader

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.set_num_threads(1)
DATA = torch.utils.data.TensorDataset(torch.arange(64), torch.randn(64, 4, generator=torch.Generator().manual_seed(0)))


class Net(lightning.LightningModule):
    """A small network that notes its examples by epoch."""

    def __init__(self, stop, dropout):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Dropout(dropout), torch.nn.Linear(16, 1))
        self.stop, self.used = stop, collections.defaultdict(list)

    def training_step(self, batch, number):
        """Return the loss; raise in a step."""
        if self.global_step == self.stop:
            raise KeyError
        self.used[self.current_epoch] += batch[0].tolist()
        return ((self.layers(batch[1])[:, 0] - batch[1].sum(1)) ** 2).mean()

    def configure_optimizers(self):
        """Return the optimizer."""
        return torch.optim.Adam(self.parameters(), 0.01)


def train(folder, kind, dropout, stop=None, resume=None):
    """Train 3 epochs of 8 steps, saved every 3; return the model."""
    lightning.seed_everything(1, verbose=False)
    net, loader = Net(stop, dropout), kind(DATA, 8, shuffle=True)
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[ModelCheckpoint(folder, every_n_train_steps=3, save_last=True)],
    )
    try:
        trainer.fit(net, loader, ckpt_path=resume)
    except KeyError:
        pass
    return net


cases = {}
with tempfile.TemporaryDirectory() as base:
    for number, (name, kind, dropout) in enumerate(
        (
            ("DataLoader, in mid-epoch", torch.utils.data.DataLoader, 0),
            ("StatefulDataLoader, in mid-epoch", StatefulDataLoader, 0),
            ("StatefulDataLoader, in mid-epoch, dropout", StatefulDataLoader, 0.5),
        )
    ):
        whole = train(f"{base}/{number}-whole", kind, dropout)
        train(f"{base}/{number}", kind, dropout, stop=13)
        resumed = train(f"{base}/{number}", kind, dropout, resume=f"{base}/{number}/last.ckpt")
        gap = max(float((a - b).abs().max()) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True))
        expected = collections.Counter(whole.used[1][32:])
        found = collections.Counter(resumed.used[1])
        again, missing = (found - expected).total(), (expected - found).total()
        if again or missing:
            cases[name] = f"{again} of 64 examples too often, {missing} too seldom"
        else:
            cases[name] = gap
versions = {"lightning": lightning.__version__, "torch": torch.__version__}
continued = "`ckpt_path`, saved every 3 steps"
print(json.dumps({"library": "Lightning", "versions": versions, "continued": continued, "cases": cases}))
