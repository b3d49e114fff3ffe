"""Hugging Face's Trainer that resumes exactly, in the middle of an epoch.

    exact_resume.hugging_face(trainer, "checkpoints/", code=[__file__]).train()

The Trainer keeps its loop. Two callbacks, the first and the last of all, drive the run: where a step begins, all of the
step before is done, with its logs and its evaluation; there the run saves and stops, and there a resumed training gets
everything back at once, so that nothing that its start has drawn, logged or counted is left.
"""

import contextlib
import json
import math
import os
import pathlib
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import exact_resume.program as program
import exact_resume.state as states
from exact_resume.checkpoints import checkpoints
from exact_resume.checkpoints.manifest import TornCheckpoint
from exact_resume.errors import InputError
from exact_resume.trainers import data_loader

_METHODS = (
    *("_init_training_state", "_load_from_checkpoint", "_load_optimizer_and_scheduler", "_load_scaler"),
    *("_load_rng_state", "_finalize_training"),
)
"""Private methods that are replaced; transformers 5.3 is the first version that has all of them."""
_COUNTERS = (
    *("_tr_loss", "_total_loss_scalar", "_globalstep_last_logged"),
    *("_initial_num_input_tokens_seen", "current_flos"),
)
"""The Trainer's attributes that count the training so far."""
_COUNTERS_OF_SOME = ("_initial_global_step", "_metrics", "_total_train_tokens")
"""Counters of transformers 5.20 and TRL."""
_PROGRESS = (
    *("epoch", "global_step", "num_input_tokens_seen", "total_flos", "log_history"),
    *("best_metric", "best_global_step", "best_model_checkpoint"),
)
"""Fields of its state; the others follow from the arguments, or differ between workers."""
_FREE = (
    *("output_dir", "logging_dir", "run_name", "project", "report_to", "hub_", "push_to_hub", "disable_tqdm", "log_"),
    *("dataloader_num", "dataloader_prefetch", "dataloader_persistent", "dataloader_pin", "dataloader_multi", "save_"),
    *("per_device_train", "local_rank", "ddp_", "resume_", "do_", "trackio", "skip_memory", "use_cpu", "restore_call"),
)
"""Beginnings of arguments of a training that may change between two starts."""
_DEFAULT_SAVES = ("steps", 500)
"""Strategy and steps of a Trainer whose arguments do not mention checkpoints."""
_CLOCKS = ("_runtime", "_per_second", "_time")
"""Ends of names of logged numbers that no two runs have in common."""


def hugging_face(
    trainer: Any,
    directory: str | os.PathLike[str],
    *,
    config: Mapping[str, Any] | None = None,
    state: Mapping[str, Any] | None = None,
    stateless: Sequence[Any] = (),
    **options: Any,
) -> "Training":
    """Return the training of a Trainer, which `train()` begins.

    Args:
        trainer: A `transformers.Trainer`, or an object of a subclass.
        directory: Folder for checkpoints, event log and result.json, local or gs://.
        config: Whatever else decides what the run computes.
        state: Objects by name, as for `exact_resume.run`, that the training changes beside those of the Trainer.
        stateless: Callbacks that have attributes, but none that later steps need.
        options: Options of `exact_resume.run`: code, save_every_steps and others.

    Raises:
        InputError: The training cannot be resumed exactly; the message names what prevents it.
    """
    _refuse(trainer)
    return Training(trainer, os.fspath(directory), dict(config or {}), dict(state or {}), stateless, options)


class Training:
    """A Trainer, and the run that it trains in."""

    def __init__(
        self,
        trainer: Any,
        directory: str,
        config: dict[str, Any],
        state: dict[str, Any],
        stateless: Sequence[Any],
        options: dict[str, Any],
    ) -> None:
        self._trainer, self._directory, self._options, self._state = trainer, directory, options, state
        self._callbacks = _callbacks(trainer, stateless)
        frozen = {name: each for name, each in trainer.model.named_parameters() if not each.requires_grad}
        self._frozen = frozen.keys()
        self._config = config | _identity(trainer, self._callbacks, frozen)
        self._saved: Any = None
        self._epoch, self._first_step, self._has_begun, self._is_open, self._has_ended = 0, 0, False, False, False

    def train(self, *, ignore_keys_for_eval: list[str] | None = None) -> Any:
        """Train to the end, from the newest checkpoint on, and return what `Trainer.train` returns.

        Raises:
            InputError: The order of the examples cannot be restored, or the folder contains another run.
            Stopped: A stop was requested; the steps that are done are saved.
        """
        trainer, args = self._trainer, self._trainer.args
        loader = trainer.get_train_dataloader()
        plain = getattr(loader, "base_dataloader", loader)
        seed = args.seed if args.data_seed is None else args.data_seed
        made, self._position = data_loader.resumable(
            plain, seed=seed, rank=args.process_index, num_workers=args.world_size
        )
        if plain is loader:
            loader = made
        else:
            # Its workers have the same order without an exchange.
            loader.base_dataloader, loader.rng_types = made, None
        num_steps = trainer.set_initial_training_values(args, loader)[-1]
        with (
            program.run(
                self._directory,
                steps=num_steps,
                state={"training": states.saved(self, save=Training._content, load=self._keep)},
                config=self._config,
                **self._options,
            ) as self._run,
            tempfile.TemporaryDirectory(prefix="exact_resume-trainer-") as folder,
            self._hooks(loader),
        ):
            if self._run.num_workers != args.world_size:
                raise InputError(
                    f"the Trainer has {args.world_size} processes, RANK and WORLD_SIZE name {self._run.num_workers};"
                    " start it with torchrun"
                )
            self._generators, self._run.of_worker = states.generators(), self._counters
            # Of this folder, the Trainer reads the batch size.
            pathlib.Path(folder, "trainer_state.json").write_text("{}")
            output = trainer.train(
                resume_from_checkpoint=folder if self._saved else None, ignore_keys_for_eval=ignore_keys_for_eval
            )
            self._run.result(metrics=self._metrics())
        return output

    def _metrics(self) -> dict[str, float]:
        """Return the last value of each logged number; of evaluations, only those of the kept model count."""
        state, found = self._trainer.state, dict[str, Any]()
        best = state.best_global_step if self._trainer.args.load_best_model_at_end else None
        for line in state.log_history:
            is_other = best is not None and line["step"] != best
            found |= {name: each for name, each in line.items() if not (is_other and name.startswith("eval_"))}
        return {name: each for name, each in _shown(found).items() if name != "step" and math.isfinite(each)}

    @contextlib.contextmanager
    def _hooks(self, loader: Any) -> Iterator[None]:
        """Replace methods of the Trainer, and add the callbacks, for the time of a training."""
        trainer, args, handler = self._trainer, self._trainer.args, self._trainer.callback_handler
        keeps_none = (args.save_strategy, args.save_steps) == _DEFAULT_SAVES
        init_state, finalize, evaluate = (
            getattr(trainer, name) for name in ("_init_training_state", "_finalize_training", "evaluate")
        )

        def init_training_state(
            max_steps: int, num_update_steps_per_epoch: int, num_train_epochs: int, folder: Any, trial: Any
        ) -> tuple[int, int]:
            found = init_state(max_steps, num_update_steps_per_epoch, num_train_epochs, None, trial)
            self._epoch = -1
            if not (saved := self._saved):
                return tuple(found)
            trainer.state.global_step = saved["progress"]["global_step"]
            self._epoch = saved["epoch"] - 1
            if saved["has_ended"]:
                return num_train_epochs, 0
            return saved["epoch"], saved["num_steps"] * args.gradient_accumulation_steps

        def finalize_training(*given: Any) -> Any:
            self._end()
            return finalize(*given)

        def evaluate_aside(*given: Any, **named: Any) -> Any:
            with self._run.evaluation():
                found = evaluate(*given, **named)
            # Their processes would have drawn since the first evaluation of this start.
            getattr(trainer, "_eval_dataloaders", {}).clear()
            return found

        def forget_save(_: Any, __: Any, control: Any, **___: Any) -> None:
            control.should_save = control.should_save and not keeps_none

        first = _Events(on_step_begin=self._begin_step)
        last = _Events(
            on_train_begin=lambda *_, **__: _refuse_missing(self._trainer, _COUNTERS),
            on_epoch_begin=self._begin_epoch,
            on_step_end=forget_save,
            on_epoch_end=forget_save,
            on_log=self._log,
            on_evaluate=self._score,
        )
        replaced = {
            **dict.fromkeys(_METHODS, lambda *_: None),
            "get_train_dataloader": lambda: loader,
            "evaluate": evaluate_aside,
            "_init_training_state": init_training_state,
            "_finalize_training": finalize_training,
        }
        kept = {name: vars(trainer)[name] for name in replaced if name in vars(trainer)}
        vars(trainer).update(replaced)
        handler.callbacks[:] = [first, *handler.callbacks, last]
        args.eval_on_start, evaluates_on_start = args.eval_on_start and not self._saved, args.eval_on_start
        try:
            yield
        finally:
            args.eval_on_start = evaluates_on_start
            handler.callbacks[:] = [each for each in handler.callbacks if each not in (first, last)]
            for name in replaced:
                del vars(trainer)[name]
            vars(trainer).update(kept)

    # What a checkpoint has.

    def _objects(self) -> dict[str, Any]:
        """Return the objects that a training changes; before it begins, the model, whose shapes identify the run."""
        trainer = self._trainer
        found = {"model": states.saved(trainer.model, save=self._trained, load=self._load)}
        if self._has_begun:
            optimizer = trainer.optimizer
            found |= {"optimizer": getattr(optimizer, "optimizer", optimizer), "scheduler": trainer.lr_scheduler}
            found |= self._state | self._callbacks
            if scaler := getattr(trainer.accelerator, "scaler", None):
                found["scaler"] = scaler
        return found

    def _content(self) -> dict[str, Any]:
        content = {name: states.content_of(each, name) for name, each in self._objects().items()}
        if not self._has_begun:
            return content
        trainer = self._trainer
        return content | {
            "progress": {name: getattr(trainer.state, name) for name in _PROGRESS},
            "counters": self._counters(),
            "epoch": self._epoch,
            "num_steps": trainer.state.global_step - self._first_step,
            "has_ended": self._has_ended,
            "thawed": self._thawed(trainer.model),
        }

    def _counters(self) -> dict[str, Any]:
        """Return the Trainer's counters, which differ between workers."""
        names = (*_COUNTERS, *_COUNTERS_OF_SOME) if self._has_begun else ()
        return {name: getattr(self._trainer, name) for name in names if hasattr(self._trainer, name)}

    def _keep(self, content: Any) -> None:
        """Keep the content of a checkpoint until the Trainer has made its optimizer."""
        self._saved = content

    def _restore(self) -> None:
        """Put everything back, once."""
        trainer, saved, self._saved = self._trainer, self._saved, None
        self._has_begun = True
        if not saved:
            return
        for name, each in self._objects().items():
            states.put(each, saved[name])
        parameters = dict(trainer.model.named_parameters())
        for name in saved["thawed"]:
            parameters[name].requires_grad_(name in self._frozen)
        for name, value in saved["progress"].items():
            setattr(trainer.state, name, value)
        counters = self._run.restored_of_worker or saved["counters"]
        _refuse_missing(trainer, [*counters])
        for name, value in counters.items():
            states.put(holder := {name: getattr(trainer, name)}, {name: value})
            setattr(trainer, name, holder[name])
        states.set_generators(self._generators)

    def _trained(self, model: Any) -> dict[str, Any]:
        """Return the parameters and buffers of the model without those that are frozen since the start."""
        frozen = self._frozen - set(self._thawed(model))
        return {name: each for name, each in model.state_dict().items() if name not in frozen}

    def _thawed(self, model: Any) -> list[str]:
        """Return the parameters that are trained and were not at the start, or the other way round."""
        return [name for name, each in model.named_parameters() if each.requires_grad == (name in self._frozen)]

    def _load(self, content: Any) -> None:
        self._trainer.model.load_state_dict(content, strict=False)

    # What happens when.

    def _begin_epoch(self, _: Any, state: Any, __: Any, **___: Any) -> None:
        self._epoch += 1
        self._position.epoch = self._epoch
        self._first_step = state.global_step - (self._saved["num_steps"] if self._saved else 0)

    def _begin_step(self, _: Any, state: Any, __: Any, **___: Any) -> None:
        if not self._has_begun:
            self._restore()
        next(self._run)
        if self._run.step != state.global_step:
            raise InputError(
                f"the Trainer is at step {state.global_step}, the run at {self._run.step}; a callback changes"
                " global_step, which no resume can follow"
            )
        self._is_open = True

    def _end(self) -> None:
        """Save the last step; load the best model if the Trainer is to."""
        trainer, args, run = self._trainer, self._trainer.args, self._run
        if not self._has_begun:
            self._restore()
        self._has_ended = True
        if trainer.state.global_step < run.num_steps and self._is_open:
            run.finish(f"the Trainer stopped the training after step {trainer.state.global_step}")
        self._is_open = False
        next(run, None)
        if args.load_best_model_at_end and run.best.step:
            # If it is lost, the run says so at its end, and the next start trains it again.
            with contextlib.suppress(TornCheckpoint):
                best = checkpoints.load(run.directory, run.best.step)
                self._load(states.read(best.state["objects"]["training"], best.arrays)["model"])

    def _log(self, _: Any, __: Any, ___: Any, logs: Mapping[str, Any], **____: Any) -> None:
        if self._is_open:
            self._run.log(**_shown(logs))

    def _score(self, args: Any, _: Any, __: Any, metrics: Mapping[str, Any], **___: Any) -> None:
        name = str(args.metric_for_best_model).removeprefix("eval_")
        value = metrics.get(f"eval_{name}")
        if not self._is_open or value is None or not math.isfinite(value):
            return
        if name == "loss" and not args.greater_is_better:
            self._run.score(loss=value)
        else:
            self._run.score(score=value if args.greater_is_better else -value, metric=name)


class _Events:
    """A callback that has some events only."""

    def __init__(self, **events: Callable[..., None]) -> None:
        vars(self).update(events)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on_"):
            raise AttributeError(name)
        return lambda *_, **__: None


def _shown(logs: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a log that two runs have in common."""
    return {
        name: float(value)
        for name, value in logs.items()
        if isinstance(value, int | float) and name != "epoch" and not name.endswith(_CLOCKS)
    }


def _refuse_missing(trainer: Any, names: Sequence[str]) -> None:
    if missing := [name for name in names if not hasattr(trainer, name)]:
        version = getattr(sys.modules.get("transformers"), "__version__", "that is not imported")
        raise InputError(
            f"{type(trainer).__name__} has no {missing[0]}, on which a resume depends; expected a Trainer of"
            f" transformers 5.3 or newer, found transformers {version}"
        )


def _refuse(trainer: Any) -> None:
    """Refuse settings with which a training cannot resume exactly.

    Raises:
        InputError: The message names it.
    """
    _refuse_missing(trainer, (*_METHODS, "accelerator", "callback_handler", "set_initial_training_values"))
    args, accelerator = trainer.args, trainer.accelerator
    kind = str(getattr(accelerator.distributed_type, "value", accelerator.distributed_type))
    collators = [getattr(trainer.data_collator, "seed", None)]
    refused = {
        f"{kind} divides the model between processes": kind not in ("NO", "MULTI_GPU", "MULTI_CPU"),
        "tensor, context or sequence parallelism divides the model between processes": (
            trainer.get_tp_size() * trainer.get_cp_size() * trainer.get_sp_size() > 1
        ),
        "auto_find_batch_size changes the batches of a training": args.auto_find_batch_size,
        "enable_jit_checkpoint saves at SIGTERM itself": getattr(args, "enable_jit_checkpoint", False),
        "split_batches and dispatch_batches divide the batches between processes themselves": (
            accelerator.split_batches or (accelerator.dispatch_batches and args.world_size > 1)
        ),
        "the data collator has a seed, whose random numbers cannot be restored": collators != [None],
        "ignore_data_skip repeats examples": args.ignore_data_skip,
    }
    for reason, is_refused in refused.items():
        if is_refused:
            raise InputError(
                f"{reason}, so the training does not resume exactly; train without it, or without this run"
            )


def _callbacks(trainer: Any, stateless: Sequence[Any]) -> dict[str, Any]:
    """Return the saved state of the callbacks, by name.

    Raises:
        InputError: A callback has attributes that cannot be saved.
    """
    found: dict[str, Any] = {}
    for callback in trainer.callback_handler.callbacks:
        # Callbacks that report to a service depend on what is installed, so these do not count.
        kind, name = type(callback), f"callbacks.{len(found)}.{type(callback).__name__}"
        if any(each is callback for each in stateless):
            continue
        if callable(getattr(callback, "state", None)):
            found[name] = states.saved(callback, save=lambda it: it.state()["attributes"], load=vars(callback).update)
        elif hasattr(callback, "state_dict"):
            found[name] = callback
        elif vars(callback) and not kind.__module__.startswith("transformers."):
            try:
                states.write(vars(callback), name, [])
            except InputError as error:
                raise InputError(
                    f"callback {kind.__name__} has an attribute that cannot be saved ({error}); give it state_dict and"
                    " load_state_dict, or list it in `stateless` if later steps need none of its attributes"
                ) from None
            found[name] = vars(callback)
    return found


def _identity(trainer: Any, callbacks: Mapping[str, Any], frozen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that decide what a training computes, besides its state."""
    args, dataset, uint8 = trainer.args, trainer.train_dataset, sys.modules["torch"].uint8
    arguments = {name: each for name, each in args.to_dict().items() if not name.startswith(_FREE)}
    model: Any = getattr(trainer.model, "config", None)
    about = json.loads(model.to_json_string()) if hasattr(model, "to_json_string") else {}
    checksum = 0
    for each in frozen.values():
        checksum = zlib.crc32(each.detach().cpu().contiguous().flatten().view(uint8).numpy(), checksum)
    found = {
        "trainer": type(trainer).__name__,
        "arguments": arguments,
        "model": {name: each for name, each in about.items() if name not in ("_name_or_path", "transformers_version")},
        "num_examples": len(dataset) if hasattr(dataset, "__len__") else None,
        "micro_batch_size": args.train_batch_size * args.world_size,
        "callbacks": [*callbacks],
        "frozen_parameters": checksum,
    }
    # Enumerations and types as texts, and nothing that is not a number.
    return dict(json.loads(json.dumps(found, default=str), parse_constant=str))
