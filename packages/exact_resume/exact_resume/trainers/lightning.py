"""Lightning's `Trainer.fit` that resumes exactly, in the middle of an epoch.

    lightning.Trainer(max_epochs=9, callbacks=[exact_resume.LightningCallback("checkpoints/", code=[__file__])])

Lightning's loops train, inside of `exact_resume.run`. A step of the run begins before the batch is fetched that follows
an update of the weights. Everything of the step before is done by then: validation, schedules, logging, hooks. The run
saves and stops there. A resumed process begins an epoch without its first hooks, and puts all back at this place.

Lightning is not imported here: a program with a trainer has imported it. All its private attributes that this module
relies on are used here, and nowhere else.
"""

import builtins
import collections
import contextlib
import hashlib
import math
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np

import exact_resume.program as program
import exact_resume.state as states
from exact_resume.errors import InputError, RunError, report_uncaught
from exact_resume.trainers import data_loader

VERSIONS = "2.5 or newer"
"""Tested versions of Lightning."""
PRIVATE = """
    _checkpoint_connector.dump_checkpoint _checkpoint_connector._loaded_checkpoint
    _checkpoint_connector.restore_datamodule _checkpoint_connector.restore_model
    _checkpoint_connector.restore_callbacks _checkpoint_connector.restore_precision_plugin_state
    _checkpoint_connector.restore_optimizers_and_schedulers _accelerator_connector.use_distributed_sampler
    _logger_connector._first_loop_iter _logger_connector._current_fx _logger_connector._callback_metrics
    _logger_connector._logged_metrics _logger_connector._progress_bar_metrics _signal_connector.received_sigterm
    fit_loop.run fit_loop.setup_data fit_loop.reset fit_loop.on_run_start fit_loop.on_run_end fit_loop.on_iteration_done
    fit_loop.load_state_dict fit_loop._restarting fit_loop._combined_loader fit_loop._data_source fit_loop._data_fetcher
    fit_loop.epoch_progress.current.processed fit_loop.epoch_loop.advance fit_loop.epoch_loop._results
    fit_loop.epoch_loop.batch_progress.current.ready fit_loop.epoch_loop.val_loop.run
    fit_loop.epoch_loop.val_loop.setup_data fit_loop.epoch_loop.val_loop._combined_loader
    fit_loop.epoch_loop.val_loop._seen_batches_per_dataloader
""".split()
"""Attributes of a trainer that its documentation does not have."""
_REFUSED = {
    "BaseFinetuning": "adds parameters to the optimizer; unfreeze them in configure_optimizers, with learning rate 0",
    "BatchSizeFinder": "trains before the run; use lightning.pytorch.tuner.Tuner in a program of its own",
    "GradientAccumulationScheduler": "changes the number of steps; give the Trainer accumulate_grad_batches",
    "LearningRateFinder": "trains before the run; use lightning.pytorch.tuner.Tuner in a program of its own",
    "OnExceptionCheckpoint": "loads a checkpoint of its own at the next start; leave it out",
    "StochasticWeightAveraging": "does not save what it changes in the schedule; use WeightAveraging",
    "Timer": "ends the training by a clock, so at another step after each resume; give max_steps",
}
"""Callback -> why it is refused, and what to do."""
_name = operator.attrgetter("__name__")
_PLAIN = (bool, int, float, str, bytes, type(None))
_LISTS, _DICTS = (
    (list, collections.deque),
    (dict, collections.OrderedDict, collections.defaultdict, collections.Counter),
)


class LightningCallback:
    """A callback of Lightning that keeps a run in a folder, for the libraries that the program has imported."""

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Make the object an instance of a subclass that is also Lightning's `Callback`."""
        names = ("lightning.pytorch", "pytorch_lightning")
        if not (bases := [sys.modules[each].Callback for each in names if each in sys.modules]):
            raise InputError(
                "exact_resume.LightningCallback needs Lightning; import lightning or pytorch_lightning before"
            )
        kind: type[Self] = type(cls.__name__, (cls, *bases), {"__doc__": cls.__doc__})
        return object.__new__(kind)

    def __init__(
        self, directory: str | os.PathLike[str], *, monitor: str = "", mode: str = "min", **options: Any
    ) -> None:
        """Prepare; nothing is read or written before `fit`.

        Args:
            directory: Folder for checkpoints, event log and result.json, local or gs://.
            monitor: Name of a metric of the validation; the best step by it is kept as well. Empty: no metric.
            mode: Whether a "min" or a "max" of it is best.
            options: Options of `exact_resume.run`: config, code, save_every_steps and others.

        Raises:
            InputError: An argument is wrong.
        """
        report_uncaught()
        own = {"steps", "state", "sampler", "validate_every_steps", "early_stopping"} & options.keys()
        if own or mode not in ("min", "max"):
            raise InputError(
                f"LightningCallback got {', '.join(sorted(own)) or f'mode={mode!r}'}; expected mode 'min' or 'max', and"
                " steps, validations and early stopping as arguments and callbacks of the Trainer"
            )
        self._directory, self._monitor, self._mode, self._options = directory, monitor, mode, options
        self._run: _Run | None = None
        self._num_fits = 0

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Put the run around the training.

        Raises:
            InputError: This training cannot be resumed exactly.
        """
        # A fast_dev_run is one batch of each kind, and nothing to keep.
        if stage == "fit" and not trainer.fast_dev_run:
            _refuse(trainer)
            self._num_fits += 1
            if self._num_fits > 1:
                raise InputError("fit was called a second time with the same LightningCallback; give each its own")
            train = trainer.fit_loop.run
            trainer.fit_loop.run = lambda: self._fit(trainer, train)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin the epoch's order."""
        if self._run:
            self._run.training.position.epoch = trainer.current_epoch

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Log the loss."""
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if self._run and hasattr(loss, "detach"):
            self._run.log(loss=loss)

    def _fit(self, trainer: Any, train: Callable[[], object]) -> None:
        """Run Lightning's training loop, with what surrounds it."""
        fit_loop = trainer.fit_loop
        epoch_loop = fit_loop.epoch_loop
        del fit_loop.run
        if trainer.ckpt_path:
            raise InputError(
                f"fit got ckpt_path={str(trainer.ckpt_path)!r}, and LightningCallback resumes from"
                f" {os.fspath(self._directory)!r}; leave ckpt_path out"
            )
        training = _Training(trainer)
        num_steps = _num_steps(trainer)
        if not num_steps:
            train()
            return
        kinds = [type(each) for each in trainer.callbacks]
        # Those that only show something come and go with the terminal.
        names = [each.__name__ for each in kinds if not {"ProgressBar", "ModelSummary"} & {*map(_name, each.__mro__)}]
        config = {
            **(self._options.get("config") or {}),
            "lightning": {
                "callbacks": names,
                "batches_per_epoch": trainer.num_training_batches if trainer.num_training_batches < math.inf else 0,
                "accumulate_grad_batches": trainer.accumulate_grad_batches,
                "gradient_clip": [trainer.gradient_clip_val, str(trainer.gradient_clip_algorithm)],
                "precision": str(trainer.precision),
                "validation": [trainer.val_check_interval, trainer.check_val_every_n_epoch],
                "seed": training.seed,
            },
        }
        with (
            _place(trainer),
            _Run(self._directory, training=training, steps=num_steps, **{**self._options, "config": config}) as run,
            contextlib.ExitStack() as changed,
        ):
            self._run = run

            def change(owner: Any, name: str, around: Callable[..., object]) -> None:
                inner = getattr(owner, name)
                setattr(owner, name, lambda *given: around(inner, *given))
                changed.callback(delattr, owner, name)

            def advance(inner: Callable[..., object], fetcher: Any) -> None:
                run.put_again(fetcher)
                if epoch_loop.batch_progress.current.ready % trainer.accumulate_grad_batches == 0:
                    if next(run, None) is None:
                        raise RunError(f"the trainer goes beyond the {num_steps} steps that it has planned")
                inner(fetcher)

            def validate(inner: Callable[..., object]) -> Any:
                with run.evaluation():
                    found = inner()
                if self._monitor in trainer.callback_metrics:
                    value = float(trainer.callback_metrics[self._monitor])
                    run.score(**({"loss": value} if self._mode == "min" else {"score": value, "metric": self._monitor}))
                return found

            def end(inner: Callable[..., object]) -> None:
                if run.is_inside and run.step + 1 < run.num_steps:
                    run.finish(f"the trainer stopped in epoch {trainer.current_epoch}")
                next(run, None)
                # The weights of the callbacks' last hooks are not those of a checkpoint.
                inner()

            change(epoch_loop, "advance", advance)
            change(epoch_loop.val_loop, "run", validate)
            change(fit_loop, "on_run_end", end)
            # Lightning's own handlers have noted a signal since they were there.
            if trainer.received_sigterm:
                trainer._signal_connector.received_sigterm = False
                run.request_stop()
            with _without_default_checkpoints(trainer):
                if run.has_ended:
                    # Callbacks may put averages into the weights when the training ends.
                    fit_loop.reset()
                    fit_loop.on_run_start()
                    run.put_again(None)
                    fit_loop.on_run_end()
                else:
                    fit_loop._restarting = bool(run.restored)
                    train()
            self._run = None
            metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
            run.result(metrics={name: value for name, value in metrics.items() if math.isfinite(value)})


class _Run(program.Run):
    """A run whose workers each save what their own module and metrics have summed up."""

    def __init__(self, directory: str | os.PathLike[str], *, training: "_Training", **options: Any) -> None:
        self.training = training
        self.restored: tuple[Any, Sequence[Any]] | None = None
        super().__init__(directory, state={"training": training}, **options)
        self.of_worker = training.own

    @property
    def has_ended(self) -> bool:
        """Whether all steps are done."""
        return self._has_ended

    @property
    def is_inside(self) -> bool:
        """Whether a step has begun and is not yet counted."""
        return self._is_inside

    def request_stop(self) -> None:
        """Stop at the next step, as if SIGTERM came now."""
        self._stop.signal_number = 15

    def put_content(self, content: Any, arrays: Sequence[Any]) -> None:
        """Put everything back, and keep it: the hooks at the start of a training may change it once more."""
        self.restored = (content, arrays)
        super().put_content(content, arrays)
        if self.restored_of_worker:
            # Those of other workers are sums over other parts of the batches.
            self.training.put_own(self.restored_of_worker, has_results=len(content["generators"]) == self.num_workers)

    def put_again(self, fetcher: Any) -> None:
        """Put everything back, and begin with the batch that comes next."""
        if self.restored:
            self.put_content(*self.restored)
            self.restored = None
            if fetcher:
                self.training.seek(fetcher)


class _Training:
    """The state of a trainer in a checkpoint."""

    def __init__(self, trainer: Any) -> None:
        """Make the order of the examples one that can be resumed.

        Raises:
            InputError: It cannot be.
        """
        self._trainer, self._fit_loop = trainer, trainer.fit_loop
        self._epoch_loop, self._connector = trainer.fit_loop.epoch_loop, trainer._checkpoint_connector
        self._hyper_parameters: dict[str, Any] = {}
        # That of seed_everything.
        self.seed = int(os.environ.get("PL_GLOBAL_SEED", 0))
        fit_loop, place = self._fit_loop, {"rank": trainer.global_rank, "num_workers": trainer.world_size}
        fit_loop.setup_data()
        loaders = [] if fit_loop._combined_loader is None else fit_loop._combined_loader.flattened
        self.position = data_loader.Position()
        if loaders:
            if len(loaders) > 1 or type(fit_loop._data_fetcher).__name__ == "_DataLoaderIterDataFetcher":
                raise InputError(
                    f"{type(trainer.lightning_module).__name__} trains with {len(loaders)} loaders, or takes their"
                    " iterator; expected one DataLoader, whose batches are an argument of training_step"
                )
            loader, self.position = data_loader.resumable(loaders[0], seed=self.seed, **place)
            fit_loop._data_source.instance, fit_loop._combined_loader = loader, None
            # The loader is divided between the workers already.
            divides, connector = trainer._accelerator_connector.use_distributed_sampler, trainer._accelerator_connector
            connector.use_distributed_sampler = False
            fit_loop.setup_data()
            connector.use_distributed_sampler = divides
        val_loop = self._epoch_loop.val_loop
        if trainer.enable_validation:
            val_loop.setup_data()
            combined = val_loop._combined_loader
            # Processes that live on would draw other random numbers after a resume.
            combined.flattened = [
                data_loader.resumable(each, seed=self.seed, **place)[0]
                if getattr(each, "persistent_workers", False)
                else each
                for each in combined.flattened
            ]

        # Arguments of callbacks and data in modules do not change, and are not saved.
        self._initial = [{name: _digest(each) for name, each in _attributes(*owner)} for owner in self._owners()]

    def seek(self, fetcher: Any) -> None:
        """Let the batches begin with the one that comes next."""
        self.position.epoch = self._fit_loop.epoch_progress.current.processed
        self.position.first_batch = self._epoch_loop.batch_progress.current.ready
        iter(fetcher)
        fetcher.fetched += self._epoch_loop.batch_progress.current.ready

    def get_state(self) -> dict[str, Any]:
        """Return the state that is the same on all workers."""
        checkpoint = self._connector.dump_checkpoint(weights_only=False)
        loops = checkpoint.pop("loops")["fit_loop"]
        loops["epoch_loop.batch_progress"]["is_last_batch"] = False
        names = [each for each in checkpoint if each.endswith(("hyper_parameters", "hparams_name", "hparams_type"))]
        self._hyper_parameters = {name: checkpoint.pop(name) for name in names}
        trainer, module, logger = self._trainer, self._trainer.lightning_module, self._trainer._logger_connector
        found = {
            "checkpoint": checkpoint,
            "loops": loops,
            "should_stop": trainer.should_stop,
            "metrics": [_located(each) for each in _metrics(logger)],
            "first": logger._first_loop_iter,
            "hook": logger._current_fx,
            "seen": dict(self._epoch_loop.val_loop._seen_batches_per_dataloader),
            "trained": [each.requires_grad for each in module.parameters()],
            "modes": [each.training for each in module.modules()],
        }
        if not module.automatic_optimization:
            # The module decides when to set them to zero.
            found["gradients"] = [each.grad for each in module.parameters()]
        return found

    def set_state(self, content: dict[str, Any]) -> None:
        """Put back what `get_state` returned."""
        connector, module, logger = self._connector, self._trainer.lightning_module, self._trainer._logger_connector
        connector._loaded_checkpoint = content["checkpoint"] | self._hyper_parameters
        connector.restore_datamodule()
        connector.restore_model()
        connector.restore_callbacks()
        connector.restore_precision_plugin_state()
        connector.restore_optimizers_and_schedulers()
        connector._loaded_checkpoint = {}
        self._fit_loop.load_state_dict(content["loops"])
        _settle(self._fit_loop)
        self._trainer.should_stop = content["should_stop"]
        for own, given in zip(_metrics(logger), content["metrics"], strict=True):
            own.clear()
            own.update(self._placed(given))
        logger._first_loop_iter, logger._current_fx = content["first"], content["hook"]
        seen = self._epoch_loop.val_loop._seen_batches_per_dataloader
        seen.clear()
        seen.update(content["seen"])
        for each, is_trained in zip(module.parameters(), content["trained"], strict=True):
            each.requires_grad_(is_trained)
        for each, is_training in zip(module.modules(), content["modes"], strict=True):
            each.training = is_training
        for each, gradient in zip(module.parameters(), content.get("gradients", ()), strict=False):
            each.grad = None if gradient is None else gradient.to(each.device)

    def own(self) -> dict[str, Any]:
        """Return the state that differs between workers: attributes of modules and callbacks, sums of logged values."""
        results = {
            key: {
                **{name: each for name, each in vars(metric.meta).items() if isinstance(each, _PLAIN)},
                "reduce_fx": [metric.meta.reduce_fx.__name__, _is_builtin(metric.meta.reduce_fx)],
                "sync": [metric.meta.sync.should, metric.meta.sync.rank_zero_only, metric.meta.sync.op],
                "attributes": _located(dict(_attributes(metric, _base_names(metric)))),
                "is_tensor": metric.is_tensor,
            }
            for key, metric in self._epoch_loop._results.items()
        }
        return {
            "attributes": [
                _located({name: each for name, each in _attributes(*owner) if before.get(name) != _digest(each)})
                for owner, before in zip(self._owners(), self._initial, strict=True)
            ],
            "buffers": [each for _, _, each in _hidden_buffers(self._trainer.lightning_module)],
            "results": results,
        }

    def put_own(self, content: dict[str, Any], *, has_results: bool) -> None:
        """Put back what `own` returned."""
        for (each, _), values in zip(self._owners(), content["attributes"], strict=True):
            _set_attributes(each, self._placed(values))
        for (_, _, buffer), value in zip(
            _hidden_buffers(self._trainer.lightning_module), content["buffers"], strict=True
        ):
            buffer.copy_(value)
        results = self._epoch_loop._results
        kinds = sys.modules[type(results).__module__]
        results.clear()
        for key, given in content["results"].items() if has_results else ():
            values, is_tensor = self._placed(given.pop("attributes")), given.pop("is_tensor")
            should, rank_zero_only, op = given.pop("sync")
            name, is_builtin = given.pop("reduce_fx")
            reduce_fx = getattr(builtins if is_builtin else sys.modules["torch"], name)
            meta = kinds._Metadata(**given, reduce_fx=reduce_fx)
            meta.sync = kinds._Sync(
                _should=should, fn=self._trainer.strategy.reduce, rank_zero_only=rank_zero_only, _op=op
            )
            results[key] = metric = kinds._ResultMetric(meta, is_tensor)
            vars(metric).update(values)
            if not is_tensor:
                metric.value = operator.attrgetter(meta.metric_attribute)(self._trainer.lightning_module)

    def _owners(self) -> Iterable[tuple[Any, Iterable[str]]]:
        """Return modules, and callbacks that have no state of their own, with the attributes of their base classes."""
        module = self._trainer.lightning_module
        base = type(module).__mro__[[each.__name__ for each in type(module).__mro__].index("LightningModule")]
        lightning = {*vars(base()), *_base_names(module)}
        found = [(each, lightning) for each in module.modules()]
        for each in self._trainer.callbacks:
            kind = type(each)
            if not kind.__module__.startswith(("lightning.", "pytorch_lightning.", "exact_resume.")) and all(
                getattr(kind, name).__qualname__.startswith("Callback.")
                for name in ("state_dict", "on_save_checkpoint")
            ):
                found.append((each, set()))
        return found

    def _placed(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values of `_located`, with their tensors where they were."""
        device, torch = self._trainer.strategy.root_device, sys.modules["torch"]

        def placed(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return value.to(device)
            if isinstance(value, dict):
                return {key: placed(each) for key, each in value.items()}
            return type(value)(map(placed, value)) if isinstance(value, list | tuple) else value

        return {name: placed(value) if is_on_device else value for name, (value, is_on_device) in values.items()}


def _refuse(trainer: Any) -> None:
    """Refuse, before the first step, settings with which a training cannot resume exactly."""
    for path in PRIVATE:
        try:
            operator.attrgetter(path)(trainer)
        except AttributeError:
            raise InputError(
                f"trainer.{path} does not exist in this version of Lightning; exact_resume needs {VERSIONS}"
            ) from None
    strategy = type(trainer.strategy).__name__
    if strategy not in ("SingleDeviceStrategy", "DDPStrategy") or (
        getattr(trainer.strategy, "_start_method", None) not in (None, "popen")
    ):
        raise InputError(
            f"the trainer has a {strategy}, which shards the model or starts its processes otherwise; expected one"
            " device, or strategy='ddp'"
        )
    for each in trainer.callbacks:
        for name in filter(_REFUSED.get, map(_name, type(each).__mro__)):
            raise InputError(f"callback {type(each).__name__} {_REFUSED[name]}")
    if trainer.reload_dataloaders_every_n_epochs or getattr(trainer, "_val_check_time_interval", None) is not None:
        raise InputError(
            "the trainer has reload_dataloaders_every_n_epochs, or val_check_interval by a clock; give one loader, and"
            " a number of batches"
        )


def _num_steps(trainer: Any) -> int:
    """Return the number of updates of the weights, at most.

    Raises:
        InputError: It is not known.
    """
    if trainer.fit_loop.skip:
        return 0
    num_batches, max_epochs = trainer.num_training_batches, trainer.max_epochs
    of_epochs = math.inf
    if num_batches < math.inf and (max_epochs or 0) > 0:
        of_epochs = math.ceil(num_batches / trainer.accumulate_grad_batches) * max_epochs
    # With several optimizers, max_steps counts the updates of all.
    of_steps = (
        trainer.max_steps if trainer.max_steps > 0 and trainer.lightning_module.automatic_optimization else math.inf
    )
    if min(of_epochs, of_steps) == math.inf:
        raise InputError(
            "the number of steps is not known: the data have no length, or max_epochs is -1; give max_steps, and with"
            " manual optimization max_epochs and data with a length"
        )
    return int(min(of_epochs, of_steps))


@contextlib.contextmanager
def _place(trainer: Any) -> Iterator[None]:
    """Let the run know the place of this worker; Lightning's launcher does not set RANK for the first one."""
    if trainer.world_size == 1:
        yield
        return
    before = os.environ.get("RANK")
    os.environ["RANK"] = str(trainer.global_rank)
    try:
        yield
    finally:
        os.environ.pop("RANK")
        if before is not None:
            os.environ["RANK"] = before


@contextlib.contextmanager
def _without_default_checkpoints(trainer: Any) -> Iterator[None]:
    """Leave out the ModelCheckpoint that Lightning adds by itself, but write its file when the training has ended."""

    def options(callback: Any) -> str:
        return repr({name: each for name, each in vars(callback).items() if name not in ("log", "log_dict", "dirpath")})

    given = trainer.callbacks
    default = [
        each for each in given if type(each).__name__ == "ModelCheckpoint" and options(each) == options(type(each)())
    ]
    trainer.callbacks = [each for each in given if each not in default]
    try:
        yield
        for each in default:
            numbers = {"epoch": trainer.current_epoch, "step": trainer.global_step}
            each.best_model_path = each.format_checkpoint_name(numbers)
            trainer.save_checkpoint(each.best_model_path)
    finally:
        trainer.callbacks = given


def _settle(loop: Any) -> None:
    """Let a loop and those in it continue as if they had never been restored."""
    loop.on_iteration_done()
    for each in vars(loop).values():
        if hasattr(each, "on_iteration_done"):
            _settle(each)


def _metrics(logger: Any) -> tuple[dict[str, Any], ...]:
    return logger._callback_metrics, logger._logged_metrics, logger._progress_bar_metrics


def _hidden_buffers(module: Any) -> list[tuple[Any, str, Any]]:
    """Return module, name and value of the buffers that a state_dict leaves out."""
    return [
        (each, name, vars(each)["_buffers"][name])
        for each in module.modules()
        for name in sorted(each._non_persistent_buffers_set)
        if vars(each)["_buffers"].get(name) is not None
    ]


def _is_builtin(function: Any) -> bool:
    return getattr(builtins, function.__name__, None) is function


def _base_names(module: Any) -> set[str]:
    """Return the attributes that each module has."""
    hyper_parameters = {"_hparams", "_hparams_initial", "_hparams_name"}
    return {*vars(sys.modules["torch"].nn.Module()), *hyper_parameters, "meta"}


def _attributes(owner: Any, base: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield attributes that have numbers, texts, tensors, arrays, and lists and dicts of these."""
    for name, value in vars(owner).items():
        if name not in base and (found := _plain(value)):
            yield name, found[0]


def _located(values: dict[str, Any]) -> dict[str, Any]:
    """Return each value with whether it has tensors on an accelerator."""

    def is_on_device(value: Any) -> bool:
        if isinstance(value, dict | list | tuple):
            return any(map(is_on_device, value.values() if isinstance(value, dict) else value))
        return getattr(getattr(value, "device", None), "type", "cpu") != "cpu"

    return {name: [each, is_on_device(each)] for name, each in values.items()}


def _digest(value: Any) -> str:
    if type(value) in _PLAIN:
        return repr(value)
    arrays: states.Arrays = []
    found = hashlib.sha256(repr(states.write(value, "", arrays)).encode())
    for each in arrays:
        found.update(each.tobytes())
    return found.hexdigest()


def _plain(value: Any) -> list[Any]:
    """Return a value as dicts, lists and tuples in a list, or an empty list if it has something else."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        return [] if type(value) is not torch.Tensor or value.requires_grad or value.is_sparse else [value]
    if isinstance(value, np.ndarray | np.generic):
        return [] if value.dtype.hasobject else [value]
    if type(value) in (*_LISTS, tuple):
        items = [_plain(each) for each in value]
        return [(tuple if type(value) is tuple else list)(each[0] for each in items)] if all(items) else []
    if type(value) in _DICTS:
        pairs = {key: _plain(each) for key, each in value.items()}
        is_plain = all(type(key) in (int, str) and each for key, each in pairs.items())
        return [{key: each[0] for key, each in pairs.items()}] if is_plain else []
    return [value] if type(value) in _PLAIN else []


def _set_attributes(owner: Any, values: dict[str, Any]) -> None:
    """Set attributes; lists and dicts in place, because others may refer to them."""
    for name, value in values.items():
        old = vars(owner).get(name)
        if type(old) in (*_LISTS, *_DICTS) and isinstance(value, list | dict):
            old.clear()
            (old.extend if type(old) in _LISTS else old.update)(value)
        else:
            vars(owner)[name] = value
