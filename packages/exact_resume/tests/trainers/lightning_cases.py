"""Train with Lightning as processes that faults end, and once undisturbed.

    python lightning_cases.py LIBRARY FOLDER CASE,POINT:STEP:SIGNAL,...

Each is a fork of this process, which has imported the library. A point is a hook of a callback, or `write`, while a
checkpoint is written, or `torn`, when the newest one is damaged, too. The case `own` is without exact_resume: it uses
Lightning's ModelCheckpoint as often. FOLDER/CASE/NAME.log has a line for each batch and validation, and CASE/codes the
exit codes.
"""

import hashlib
import importlib
import json
import os
import pathlib
import sys
from typing import Any

import torch
import torchmetrics

import exact_resume
from exact_resume.checkpoints import async_writer

library = importlib.import_module(sys.argv[1])
torch.set_num_threads(1)
NUM_EXAMPLES = 100
rows = torch.arange(NUM_EXAMPLES)
x = torch.randn(NUM_EXAMPLES, 8, generator=torch.Generator().manual_seed(0))
y = (x[:, 0] + x[:, 1] > 0).long()


class Noisy(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Draws from the global generator, as an augmentation does."""

    def __len__(self) -> int:
        return NUM_EXAMPLES

    def __getitem__(self, row: int) -> Any:
        return rows[row], x[row] + 0.1 * torch.randn(8), y[row]


class Streamed(torch.utils.data.IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        data = Noisy()
        return (data[row] for row in range(NUM_EXAMPLES))


def note(*words: Any) -> None:
    with open(f"{folder}/{name}.log", "a") as file:
        print(*words, file=file)


class Net(library.LightningModule):  # type: ignore[misc,name-defined]
    def __init__(self, schedule: str = "", **options: Any) -> None:
        super().__init__()
        self.schedule = schedule
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 16),
            torch.nn.BatchNorm1d(16),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.3),
            torch.nn.Linear(16, 2),
        )
        self.accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=2)
        self.outputs: list[Any] = []

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        row, x, y = batch
        # As an augmentation on the device.
        return row, x + 0.01 * torch.randn_like(x) if self.trainer.training else x, y

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        row, x, y = batch
        found = self.layers(x)
        loss = torch.nn.functional.cross_entropy(found, y)
        note(
            "batch", self.trainer.current_epoch, batch_idx, self.global_step, *row.tolist(), float(loss.detach()).hex()
        )
        self.log("loss", loss, on_step=True, on_epoch=True)
        self.accuracy(found, y)
        self.log("accuracy", self.accuracy, on_epoch=True, on_step=False)
        if batch_idx % 3 == 0:
            self.log("largest", loss, on_step=False, on_epoch=True, reduce_fx=max)
        self.outputs.append(loss.detach())
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        _, x, y = batch
        self.log("val_loss", torch.nn.functional.cross_entropy(self.layers(x), y))

    def on_validation_end(self) -> None:
        if not self.trainer.sanity_checking:
            note(
                "validation",
                self.trainer.current_epoch,
                self.global_step,
                float(self.trainer.callback_metrics["val_loss"]).hex(),
            )

    def on_train_epoch_start(self) -> None:
        note("start", self.trainer.current_epoch, self.global_step)

    def on_train_epoch_end(self) -> None:
        mean = torch.stack(self.outputs).mean()
        self.outputs.clear()
        note("epoch", self.trainer.current_epoch, float(mean).hex())

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        schedulers = {
            "step": lambda: torch.optim.lr_scheduler.OneCycleLR(
                optimizer, 0.05, total_steps=int(self.trainer.estimated_stepping_batches)
            ),
            "epoch": lambda: torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8),
            "plateau": lambda: torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=0.1),
        }
        if not self.schedule:
            return optimizer
        found = {"scheduler": schedulers[self.schedule](), "interval": "step" if self.schedule == "step" else "epoch"}
        return {"optimizer": optimizer, "lr_scheduler": found | {"monitor": "val_loss"}}


class Manual(Net):
    """Two optimizers; gradients are summed over two batches."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch: Any, batch_idx: int) -> None:
        loss = super().training_step(batch, batch_idx)
        self.manual_backward(loss / 2)
        if batch_idx % 2:
            for each in self.optimizers():
                each.step()
                each.zero_grad()

    def configure_optimizers(self) -> Any:
        layers = list(self.layers)
        return [
            torch.optim.SGD(torch.nn.Sequential(*part).parameters(), lr=0.05, momentum=0.9)
            for part in (layers[:2], layers[2:])
        ]


class Data(library.LightningDataModule):  # type: ignore[misc,name-defined]
    num_counted = 0

    def setup(self, stage: str) -> None:
        self.data = Noisy()

    def train_dataloader(self) -> Any:
        return torch.utils.data.DataLoader(self.data, batch_size=16, shuffle=True)

    def val_dataloader(self) -> Any:
        return torch.utils.data.DataLoader(self.data, batch_size=32)

    def state_dict(self) -> dict[str, Any]:
        return {"num_counted": self.num_counted}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.num_counted = state_dict["num_counted"]

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        self.num_counted += self.trainer.training
        row, x, y = batch
        return row, x * (1 + 0.001 * self.num_counted), y


class Fault(library.Callback):  # type: ignore[misc,name-defined]
    """Sends a signal in the step of a hook."""

    def __init__(self, point: str, step: str, number: str) -> None:
        super().__init__()
        self.step, self.number = int(step), int(number)
        if point == "write":
            original = async_writer.CheckpointWriter.write

            def write(writer: Any, checkpoint: Any, **options: Any) -> None:
                original(writer, checkpoint, **options)
                if checkpoint.step >= self.step:
                    os.kill(os.getpid(), self.number)

            async_writer.CheckpointWriter.write = write  # type: ignore[method-assign]
        else:
            self.is_torn = point == "torn"
            setattr(self, "on_train_batch_start" if self.is_torn else point, self.disturb)

    def disturb(self, trainer: Any, *given: Any) -> None:
        if not trainer.sanity_checking and trainer.fit_loop.epoch_loop.total_batch_idx == self.step:
            if self.is_torn:
                files = [*pathlib.Path(folder, name).glob("**/*.npz"), *pathlib.Path(folder, name).glob("**/*.ckpt")]
                newest = max(files, key=os.path.getmtime)
                os.truncate(newest, newest.stat().st_size // 2)
            os.kill(os.getpid(), self.number)


class Attributes(library.Callback):  # type: ignore[misc,name-defined]
    """Changes the training by what it has counted."""

    def __init__(self) -> None:
        super().__init__()
        self.losses: list[float] = []

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.losses.append(float(outputs["loss"]))
        trainer.optimizers[0].param_groups[0]["lr"] = 0.01 / (1 + sum(self.losses[-5:]))


def make() -> tuple[Any, dict[str, Any], list[Any], dict[str, Any]]:
    """Return module, options of the trainer, callbacks, and data of a case."""
    callbacks = library.pytorch.callbacks if hasattr(library, "pytorch") else library.callbacks
    plugins = library.pytorch.plugins if hasattr(library, "pytorch") else library.plugins
    loader = torch.utils.data.DataLoader
    train, val = loader(Noisy(), batch_size=16, shuffle=True), loader(Noisy(), batch_size=32)
    module, options, own = Net(), {"max_epochs": 4}, []
    data = {"train_dataloaders": train, "val_dataloaders": val}
    if case in ("step", "epoch", "plateau"):
        module = Net(case)
    elif case == "ema":
        own = [callbacks.EMAWeightAveraging(decay=0.9)]
    elif case == "early":
        own = [callbacks.EarlyStopping("val_loss", patience=1, min_delta=0.1)]
        options = {"max_epochs": 20}
    elif case == "checkpoint":
        own = [callbacks.ModelCheckpoint(f"{folder}/{name}-own", monitor="val_loss", save_top_k=2, save_last=True)]
    elif case in ("accumulate", "own_accumulate"):
        options |= {"accumulate_grad_batches": 2}
    elif case == "clip":
        options |= {"gradient_clip_val": 0.1}
    elif case == "bf16":
        options |= {"precision": "bf16-mixed"}
    elif case == "scaler":
        # Without a GPU, Lightning takes bf16 in place of fp16 unless it is given the plugin.
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0, growth_interval=5)
        options |= {"plugins": [plugins.MixedPrecision("16-mixed", "cpu", scaler)], "gradient_clip_val": 0.1}
    elif case == "compile":
        module.layers.compile()
    elif case == "interval":
        options |= {"val_check_interval": 3}
    elif case == "iterations":
        options = {"max_steps": 17, "val_check_interval": 5, "check_val_every_n_epoch": None}
    elif case == "manual":
        module = Manual()
    elif case == "workers":
        data["train_dataloaders"] = loader(Noisy(), batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)
        data["val_dataloaders"] = loader(Noisy(), batch_size=32, num_workers=2, persistent_workers=True)
    elif case == "stream":
        data["train_dataloaders"] = loader(Streamed(), batch_size=16)
        options = {"max_steps": 20}
    elif case == "module":
        data = {"datamodule": Data()}
    elif case == "attributes":
        own = [Attributes()]
    return module, options, own, data


def train(fault: str) -> None:
    library.seed_everything(3, verbose=False)
    module, options, own, data = make()
    own.append(Fault(*(fault or "none:0:0").split(":")))
    run, resume = exact_resume.LightningCallback(f"{folder}/{name}", save_every_steps=3, save_every_seconds=0), {}
    if case.startswith("own"):
        callbacks = library.pytorch.callbacks if hasattr(library, "pytorch") else library.callbacks
        run = callbacks.ModelCheckpoint(f"{folder}/{name}", every_n_train_steps=3, save_last=True)
        resume = {"ckpt_path": "last"}
    trainer = library.Trainer(
        **options, callbacks=[*own, run], accelerator="cpu", logger=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=folder, log_every_n_steps=2,
    )  # fmt: skip
    trainer.fit(module, **data, **resume)
    digest = hashlib.sha256(b"".join(each.numpy().tobytes() for each in module.state_dict().values())).hexdigest()
    numbers = {key: float(value).hex() for key, value in trainer.callback_metrics.items()}
    found = {"weights": digest, "metrics": numbers, "step": trainer.global_step, "epoch": trainer.current_epoch}
    if not trainer.global_rank:
        pathlib.Path(folder, f"{name}.json").write_text(json.dumps(found))


for given in sys.argv[3:]:
    case, *faults = given.split(",")
    folder = f"{sys.argv[2]}/{case}"
    os.makedirs(folder)
    for name, fault in [("whole", ""), *(("disturbed", fault) for fault in [*faults, ""])]:
        sys.stdout.flush()
        if not (child := os.fork()):
            with open(f"{folder}/{name}.output", "a") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            train(fault)
            sys.exit()
        with open(f"{folder}/codes", "a") as file:
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=file)
