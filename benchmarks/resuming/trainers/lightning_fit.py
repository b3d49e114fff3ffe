"""Lightning, which resumes by `ckpt_path="last"` from the file that ModelCheckpoint keeps."""

import os
import time

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from safetensors.torch import save_file

torch.set_num_threads(1)
lightning.seed_everything(1)
generator = torch.Generator().manual_seed(0)
data = torch.utils.data.TensorDataset(torch.arange(64), torch.randn(64, 4, generator=generator))


class Net(lightning.LightningModule):
    """A small network with dropout, and a rate that falls."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1))

    def training_step(self, batch, number):
        """Return the loss, and print the step."""
        time.sleep(0.05)
        loss = ((self.layers(batch[1])[:, 0] - batch[1].sum(1)) ** 2).mean()
        rate = self.optimizers().param_groups[0]["lr"]
        examples = batch[0].tolist()
        print(f"step {self.global_step}: loss={loss.item()} learning_rate={rate} examples={examples}", flush=True)
        return loss

    def configure_optimizers(self):
        """Return the optimizer and its schedule."""
        optimizer = torch.optim.Adam(self.parameters(), 0.01)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0, 48)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


trainer = lightning.Trainer(
    max_epochs=6,
    accelerator="cpu",
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    callbacks=[ModelCheckpoint(os.environ["AIP_CHECKPOINT_DIR"], every_n_train_steps=5, save_last=True)],
)
net = Net()
trainer.fit(net, torch.utils.data.DataLoader(data, 8, shuffle=True), ckpt_path="last")
os.makedirs(os.environ["AIP_MODEL_DIR"], exist_ok=True)
save_file(net.state_dict(), os.environ["AIP_MODEL_DIR"] + "/model.safetensors")
