"""Lightning by itself and with exact_resume: prints lines for `python -m benchmarks.comparison`."""

import functools
import os
import sys
from pathlib import Path
from typing import Any

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import lightning
import torch

import exact_resume
from benchmarks.comparison import faults
from benchmarks.comparison.faults import Notes, Tool


class _Module(lightning.LightningModule):  # type: ignore[misc]
    def __init__(self, notes: Notes) -> None:
        super().__init__()
        drop = torch.nn.Dropout(0.2)
        self.layers = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), drop, torch.nn.Linear(32, 10))
        # Not a number or a text, which would be restored.
        self._notes = notes

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        self._notes.begin([*self.state_dict().values()])

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._notes.step(batch[2].tolist(), [*self.state_dict().values()])

    def configure_optimizers(self) -> Any:
        return torch.optim.AdamW(self.parameters(), lr=0.005)


def _train(folder: Path, notes: Notes, *, is_exact: bool) -> float:
    # With several threads, the last bits of a sum may differ from run to run.
    torch.set_num_threads(1)
    lightning.seed_everything(0, verbose=False)
    images, labels = map(torch.from_numpy, faults.digits())
    data = torch.utils.data.TensorDataset(images, labels, torch.arange(len(labels)))
    if is_exact:
        saves: Any = exact_resume.LightningCallback(folder, code=[__file__], save_every_steps=faults.SAVE_EVERY)
    else:
        saves = lightning.pytorch.callbacks.ModelCheckpoint(
            folder, every_n_train_steps=faults.SAVE_EVERY, save_last=True
        )
    trainer = lightning.Trainer(
        max_epochs=faults.EPOCHS,
        accelerator="cpu",
        callbacks=[saves],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )
    module = _Module(notes)
    loader = torch.utils.data.DataLoader(data, faults.BATCH_SIZE, shuffle=True)
    trainer.fit(module, loader, ckpt_path=None if is_exact else "last")
    module.eval()
    return float(torch.nn.functional.cross_entropy(module.layers(images), labels).detach())


if __name__ == "__main__":
    own = functools.partial(_train, is_exact=False)
    exact = functools.partial(_train, is_exact=True)
    sys.exit(
        faults.measure(
            [
                Tool(name="Lightning, ckpt_path", train=own, newest=lambda folder: folder / "last.ckpt"),
                Tool(
                    name="exact_resume.LightningCallback", train=exact, newest=lambda folder: max(folder.glob("step-*"))
                ),
            ]
        )
    )
