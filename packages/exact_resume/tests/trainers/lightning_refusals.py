"""Print what `exact_resume.LightningCallback` says to trainings that it cannot resume, one JSON object per line."""

import importlib
import json
import sys
from typing import Any

import torch

import exact_resume

library = importlib.import_module(sys.argv[1])
callbacks = getattr(library, "pytorch", library).callbacks


class Net(library.LightningModule):  # type: ignore[misc,name-defined]
    def __init__(self, *, is_automatic: bool = True) -> None:
        super().__init__()
        self.layer = self.backbone = torch.nn.Linear(2, 1)
        self.automatic_optimization = is_automatic

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        print("a step was trained", file=sys.stderr)
        return self.layer(batch[0]).sum()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Several(Net):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return self.layer(batch["a"][0]).sum()


class Iterating(Net):
    def training_step(self, dataloader_iter: Any) -> Any:
        return self.layer(next(dataloader_iter)[0][0]).sum()


class Endless(torch.utils.data.IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return iter([(torch.ones(2),)] * 100)


def loader(**options: Any) -> Any:
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 2)), batch_size=2, **options)


def fit(
    *given: Any, module: Any = None, data: Any = None, run: Any = None, ckpt_path: Any = None, **options: Any
) -> None:
    own = [*given, run or exact_resume.LightningCallback(f"{sys.argv[2]}/run")]
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    options = {"max_epochs": 1, "accelerator": "cpu", "default_root_dir": sys.argv[2]} | quiet | options
    data = loader() if data is None else data
    library.Trainer(callbacks=own, **options).fit(module or Net(), data, ckpt_path=ckpt_path)


def moved() -> None:
    loop = type(library.Trainer(logger=False).fit_loop.epoch_loop)
    advance = loop.advance
    del loop.advance
    try:
        fit()
    finally:
        loop.advance = advance


def saved_elsewhere() -> str:
    module = Net()
    trainer = library.Trainer(max_epochs=0, logger=False, accelerator="cpu", enable_progress_bar=False)
    trainer.fit(module, loader())
    trainer.save_checkpoint(f"{sys.argv[2]}/other.ckpt")
    return f"{sys.argv[2]}/other.ckpt"


def sharded() -> None:
    trainer = library.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, callbacks=[exact_resume.LightningCallback(f"{sys.argv[2]}/run")]
    )
    for name in ("FSDPStrategy", "DeepSpeedStrategy", "ModelParallelStrategy"):
        # Neither starts without accelerators; only their names matter here.
        trainer.strategy.__class__ = type(name, (type(trainer.strategy),), {})
        attempt(name, lambda: trainer.fit(Net(), loader()))


def attempt(name: str, act: Any) -> None:
    try:
        act()
    except exact_resume.InputError as error:
        print(json.dumps([name, str(error)]))


sharded()
attempt("swa", lambda: fit(callbacks.StochasticWeightAveraging(swa_lrs=0.1)))
attempt("finetuning", lambda: fit(callbacks.BackboneFinetuning()))
attempt("scheduler", lambda: fit(callbacks.GradientAccumulationScheduler({0: 2})))
attempt("timer", lambda: fit(max_time={"hours": 1}))
attempt("exception", lambda: fit(callbacks.OnExceptionCheckpoint(sys.argv[2])))
attempt("rate", lambda: fit(callbacks.LearningRateFinder()))
attempt("reload", lambda: fit(reload_dataloaders_every_n_epochs=1))
attempt("ckpt_path", lambda: fit(ckpt_path=saved_elsewhere()))
attempt("several", lambda: fit(module=Several(), data={"a": loader(), "b": loader()}))
attempt("iterator", lambda: fit(module=Iterating()))
attempt("length", lambda: fit(data=torch.utils.data.DataLoader(Endless(), batch_size=2), max_epochs=2))
attempt("infinite", lambda: fit(max_epochs=-1))
attempt("manual", lambda: fit(module=Net(is_automatic=False), max_epochs=-1, max_steps=4))
attempt("early_stopping", lambda: exact_resume.LightningCallback("run", early_stopping=None))
attempt("mode", lambda: exact_resume.LightningCallback("run", mode="least"))
attempt("moved", moved)
attempt("twice", lambda: [fit(run=each) for each in [exact_resume.LightningCallback(f"{sys.argv[2]}/run")] * 2])
