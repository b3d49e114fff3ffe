"""A program's own training, whatever framework it uses, in the loop.

    with exact_resume.run("checkpoints/", steps=1000, state={"model": model}, code=[__file__]) as run:
        for step in run:
            run.log(loss=train(step))
        run.result(metrics={"accuracy": evaluate()})

`with` takes the lease, refuses another run in the folder and restores the newest intact checkpoint. `for` yields the
steps that are left.
"""

import contextlib
import gc
import itertools
import math
import numbers
import operator
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NoReturn, Self

import numpy as np

import exact_resume.rehearsal as rehearsal
import exact_resume.state as states
from exact_resume.checkpoints import checkpoints, identity as identities
from exact_resume.checkpoints.checkpoints import Checkpoint
from exact_resume.checkpoints.early_stopping import EarlyStopping
from exact_resume.errors import InputError, report_uncaught
from exact_resume.events import log as event_log
from exact_resume.files import storage
from exact_resume.loop import Content, Loop, Schedule, Stopped
from exact_resume.rebinding import Rebinding
from exact_resume.run_folder import JOB_ID, RunFolder, print_notice
from exact_resume.sampler import Sampler
from exact_resume.text import quote, report
from exact_resume.workers import place as places
from exact_resume.workers.deadline import Deadline, TimedOut
from exact_resume.workers.meeting import InFolder, refuse_difference
from exact_resume.workers.signals import StopRequest
from exact_resume.workers.team import OneWorker, SeveralWorkers, Team
from exact_resume.workers.watchdog import leave


class Run(Loop):
    """A run, to be used with `with`; iterate over it once. `exact_resume.run` is this class.

    TF_CONFIG, CLUSTER_SPEC or PyTorch's RANK and WORLD_SIZE name the place of this worker among several.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        steps: int,
        state: Mapping[str, Any],
        config: Mapping[str, Any] | None = None,
        sampler: Sampler | None = None,
        code: Sequence[str | os.PathLike[str]] = (),
        save_every_steps: int = 0,
        save_every_seconds: float | None = None,
        keep_checkpoints: int = 3,
        validate_every_steps: int = 0,
        early_stopping: EarlyStopping | None = None,
        watchdog_seconds: float = 900.0,
        peer_timeout_seconds: float = 300.0,
        rehearse: bool = False,
    ) -> None:
        """Check the arguments. Steps, config, sampler, state and code identify the run.

        Args:
            directory: Folder for checkpoints, event log and result.json, local or gs://.
            steps: Number of steps of the whole run; a step is one update of the weights.
            state: What a step changes, by name: see `exact_resume.state`.
            config: Whatever else decides what the run computes: numbers, texts, lists and dicts.
            sampler: The order of the examples.
            code: Files of code; a change makes it another run.
            save_every_steps: Number of steps between two saves; 0: not by steps.
            save_every_seconds: Save this long after the last save; 0: not by time; None: by the cost of a save.
            keep_checkpoints: Number of newest checkpoints to keep, besides the best one.
            validate_every_steps: In `blocks`, a validation is due after this many steps and after the last; 0: never.
            early_stopping: When the run ends early, by its scores.
            watchdog_seconds: Abort (134) after this long without a step; 0: never.
            peer_timeout_seconds: Abort (134) if another worker does not join, or is silent for this long.
            rehearse: Before the first step of a new run, start this program a few times for 10 steps, and refuse to
                train if it does not resume exactly.

        Raises:
            InputError: An argument is wrong.
        """
        report_uncaught()
        whole = {
            "steps": (steps, 1),
            "save_every_steps": (save_every_steps, 0),
            "keep_checkpoints": (keep_checkpoints, 1),
            "validate_every_steps": (validate_every_steps, 0),
        }
        for name, (value, lowest) in whole.items():
            if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value < 2**53:
                raise InputError(f"{name} is {quote(value)}; expected a whole number, at least {lowest}")
        times = {"save_every_seconds": (save_every_seconds or 0, 0), "watchdog_seconds": (watchdog_seconds, 0)}
        for name, (seconds, lowest) in (times | {"peer_timeout_seconds": (peer_timeout_seconds, 1)}).items():
            # Also false for NaN.
            if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not lowest <= seconds < 2**53:
                raise InputError(f"{name} is {quote(seconds)}; expected a number of seconds, at least {lowest}")
        if not isinstance(state, Mapping) or not state or not all(isinstance(name, str) and name for name in state):
            raise InputError(
                f"state is {quote(state)}; expected a dict of objects with names, such as {{'model': model}}"
            )
        self._place = places.read(os.environ)
        schedule = Schedule(
            num_steps=steps,
            save_every_steps=save_every_steps,
            save_every_seconds=save_every_seconds,
            keep_checkpoints=keep_checkpoints,
            validate_every_steps=validate_every_steps,
            early_stopping=early_stopping or EarlyStopping(),
        )
        super().__init__(schedule, rank=self._place.rank, num_workers=self._place.num_workers)
        self.directory = os.fspath(directory).rstrip("/")
        if not self.directory:
            # Perhaps from a variable that is not set.
            raise InputError("directory is empty or /; expected a folder for this run, such as checkpoints")
        self._tracer, self._rehearse = rehearsal.Tracer.of(os.environ, self.num_workers), rehearse
        if self._tracer:
            self.directory, self._after_block = self._tracer.directory, self._trace
            self.boundary(self._tracer.stop_step)
        # The given dict is not kept: whether the program refers to it decides what it can change.
        self._objects, self._sampler = dict(state), sampler
        self._identity = identities.of_run(steps, config or {}, sampler, code)
        if validate_every_steps:
            self._identity["validate_every_steps"] = validate_every_steps
        if early_stopping:
            self._identity |= {f"early_stopping.{key}": value for key, value in vars(early_stopping).items()}
        self._watchdog_seconds, self._peer_timeout_seconds = watchdog_seconds, peer_timeout_seconds
        self._generators: dict[str, Any] = {}
        self._of_workers: list[tuple[Any, states.Arrays]] = []
        self.of_worker: Callable[[], dict[str, Any]] = dict
        """Returns numbers, arrays and tensors that each worker has for itself, beside its random generators."""
        self.restored_of_worker: dict[str, Any] = {}
        """State of this worker from the checkpoint; empty without a checkpoint, and on an additional worker."""

    def __enter__(self) -> Self:
        """Take the folder and restore the newest checkpoint.

        Raises:
            InputError: The folder contains another run, the state cannot be saved, the workers differ, or the run does
                not resume exactly.
            NotHolder: Another job trains in the folder.
            SystemExit: Other workers did not join (134), or a stop was requested.
        """
        self._state = states.State(self._objects)
        self._identity |= {f"state.{path}": shape for path, shape in self._state.shapes.items()}
        if threading.current_thread() is not threading.main_thread():
            raise InputError("exact_resume.run is used in a thread; only the main thread receives signals")
        if self._rehearse and not self._tracer and not checkpoints.steps(self.directory):
            if self.num_workers > 1:
                raise InputError("rehearse is set, and there are several workers; expected one: leave it out here")
            if rehearsal.rehearse([sys.executable, *sys.orig_argv[1:]]) == 1:
                raise InputError("the rehearsal has shown that this run does not resume exactly; see above")
        self._handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        self._stop = stop = StopRequest().install()
        self._folder = RunFolder(
            self.directory,
            self._identity,
            is_chief=not self.rank,
            stop=stop,
            report=report,
            observer=print_notice,
            defaults={},
            way_on="give another folder, or restore the value",
        )
        self._rebinding: Rebinding | None = None
        with contextlib.ExitStack() as undo:
            undo.callback(self._restore_handlers)
            try:
                self._team = self._meet()
                undo.callback(self._team.close)
                undo.callback(self._folder.close)
                self._team.exchange({**self._identity, "number of workers": self.num_workers}, self._take_folder)
            except TimedOut as error:
                raise (Stopped if self._stop.is_set else SystemExit)(error.exit_code) from None
            undo.callback(self._team.fail)
            self._folder.open(event_log.replica_of_rank(self.rank), watchdog_seconds=self._watchdog_seconds)
            self._log_start()
            self.begin(self._folder, self._team, stop)
            report(
                f"run {self._folder.run_id} resumes at step {self.step} of {self.num_steps}"
                if self.step
                else f"run {self._folder.run_id} starts at step 0: no checkpoint in {self.directory!r}"
            )
            self._num_taken = self._state.num_taken()
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the folder. Without an exception, a run whose steps are all done is finished.

        Raises:
            Stopped: A stop was requested before the error.
        """
        is_stopped = self._folder.stopped_by(error, f" after step {self.step}")
        code = self._stop.exit_code if is_stopped else 1
        if isinstance(error, SystemExit):
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        is_left = not self._has_ended and (kind is None or code == 0)
        try:
            if kind is None and self._has_ended:
                self.result()
                self.end()
                code = 0
        finally:
            if kind or code:
                self._team.fail()
            self.close()
            self._folder.log_exit(code or int(is_left))
            self._undo.close()
        if is_stopped:
            raise Stopped(code) from error
        if is_left:
            report(
                f"the loop was left after step {self.step} of {self.num_steps}, so the run is not finished; call"
                " run.finish(reason) before `break` if these steps are enough, and let `run` be the first in `zip`"
            )
            raise SystemExit(1)

    def result(self, *, model: str | os.PathLike[str] = "", metrics: Mapping[str, float] | None = None) -> None:
        """Mark the run as finished, with `result.json`; a run that is finished already keeps its result.

        The chief's arguments count; the other workers leave `with` once it is written.

        Args:
            model: File or folder with the model that the program has written.
            metrics: Name -> finite number.

        Raises:
            InputError: Steps remain, a metric is not a finite number, or the model does not exist.
        """
        if not self._has_ended:
            raise InputError(
                f"{self.num_steps - self.step} of {self.num_steps} steps remain; call result after the loop, or"
                " run.finish(reason) before"
            )
        if self._is_finished or self._lost_step or self.rank:
            return
        found = dict(metrics or {})
        for name, value in found.items():
            if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
                raise InputError(f"metric {name!r} is {quote(value)}; expected a finite number, such as float(value)")
            found[name] = float(value)
        path = os.fspath(model)
        if path and not (storage.exists(path) or storage.names(path)):
            raise InputError(f"model {path!r} does not exist; write it before run.result")
        self.write_result(
            metrics=found,
            model={"path": path} if path else None,
            examples="in the sampler's order" if self._sampler else "not known",
        )
        report(f"run {self._folder.run_id} is finished after step {self.step}")

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Restore the global random generators afterwards."""
        outer, before = self._generators, states.generators()
        self._generators = outer or before
        try:
            yield
        finally:
            states.set_generators(before)
            self._generators = outer

    def _meet(self) -> Team:
        if self.num_workers == 1:
            return OneWorker()
        return SeveralWorkers(
            self._place,
            InFolder(self._place, self.directory, os.environ.get(JOB_ID, "")),
            timeout_seconds=self._peer_timeout_seconds,
            deadline=Deadline(self._stop, self._peer_timeout_seconds, report),
            leave=lambda reason: leave(reason, self._folder.log_event),
        )

    def _take_folder(self, identities: list[dict[str, Any]]) -> None:
        """Take the folder as the chief, if all workers compute the run that is there."""
        refuse_difference(identities)
        self._folder.refuse_other_run()
        self._folder.take()

    def _raise_stopped(self) -> NoReturn:
        raise Stopped(self._stop.exit_code)

    def _restore_handlers(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _log_start(self) -> None:
        about = {}
        if sampler := self._sampler:
            about = {"steps_per_epoch": sampler.steps_per_epoch, "global_batch_size": sampler.global_batch_size}
        self._folder.log_start(
            num_steps=self.num_steps,
            num_workers=self.num_workers,
            task=f"worker {self.rank}",
            **about,
        )

    def copy(self) -> Content:
        """Return copies of the objects, with the random generators of all workers."""
        objects, arrays = self._state.take()
        generators = []
        for tree, found in self._of_workers:
            generators.append([len(arrays), tree])
            arrays += found
        return Content(arrays=arrays, state={"objects": objects, "generators": generators, "logged": self.logged})

    def put(self, checkpoint: Checkpoint) -> None:
        """Put the objects back, and the random generators of this worker."""
        if (num_before := len(checkpoint.state["generators"])) != self.num_workers:
            self._folder.notice(
                f"the run continues with {self.num_workers} worker(s) instead of {num_before}: sums in another order"
                " and other random numbers may give the result other bits than the same number of workers"
            )
        self.put_content(checkpoint.state, checkpoint.arrays)

    def put_content(self, content: Any, arrays: Sequence[Any]) -> None:
        """Put back what `copy` returned."""
        self._state.put(content["objects"], arrays)
        self._logged = content["logged"]
        # A worker that the run did not have keeps what the program has seeded.
        for first, tree in content["generators"][self.rank : self.rank + 1]:
            found = states.read(tree, arrays[first:])
            self.restored_of_worker = found.pop("worker", {})
            states.set_generators(found)

    def before_save(self) -> None:
        """Send the chief each worker's own state."""
        own: states.Arrays = []
        found = self._generators or states.generators()
        if about := self.of_worker():
            found = found | {"worker": about}
        tree = states.write(found, "generators", own)
        self._of_workers = [(tree, own)]
        if self.num_workers > 1:
            sent: list[Any] = []
            self._team.exchange([tree, [[each.dtype.name, each.tolist()] for each in own]], sent.extend)
            self._of_workers = [(tree, [np.array(numbers, kind) for kind, numbers in lists]) for tree, lists in sent]

    def epoch(self, step: int) -> dict[str, float]:
        """Return the field `epoch` of an event, which the sampler knows."""
        return {"epoch": step / self._sampler.steps_per_epoch} if self._sampler else {}

    def before_look(self) -> None:
        """Note before the first step what the program refers to; end a rehearsal."""
        if not self._rebinding and not self._has_ended:
            self._begin()
        if self._tracer and (self.step >= self._tracer.stop_step or self._has_ended):
            # Nothing after the loop runs.
            self._stop.signal_number = signal.SIGTERM

    def _trace(self, now: float) -> None:
        if self._tracer:
            self._tracer.note(self.step, self._values, *self._state.take())
            self._flush(now)

    def _save(self) -> None:
        self._report_rebinding()
        super()._save()

    def _begin(self) -> None:
        """Note before the first step what the program refers to.

        Raises:
            SystemExit: It has already taken an item of a stream (2).
        """
        for name, num_taken in self._state.num_taken().items():
            if num_taken != self._num_taken[name]:
                self._refuse(
                    f"{num_taken - self._num_taken[name]} items of the stream {name!r} were taken before the first step"
                    " began, so each save would count an item too many; take them in their step: `for step, item in"
                    f" zip(run, {name})`"
                )
        # A zip has a tuple of its iterators, which takes an item from each before `run`.
        for each in filter(lambda each: type(each) is tuple, gc.get_referrers(self)):
            is_zip = any(type(owner) is zip for owner in gc.get_referrers(each))
            for other in itertools.takewhile(lambda other: other is not self, each if is_zip else ()):
                # Of a list, one item was taken; a DataLoader still counts it.
                num_left = operator.length_hint(other, self.num_steps + 1) - hasattr(other, "__len__")
                if num_left < self.num_steps - self.step:
                    self._refuse(
                        f"`zip` takes an item of a {type(other).__name__} before each step, and none is left when the"
                        " last step ends, so the run would not be finished; write `for step, item in zip(run, items)`"
                    )
        self._rebinding = Rebinding(self._objects)

    def _report_rebinding(self) -> None:
        """Report the members of the state that the program has rebound.

        Raises:
            SystemExit: No other member is left that it can change (2).
        """
        if not self._rebinding or not (found := self._rebinding.lost()):
            return
        for name, mend in found.items():
            self._folder.notice(
                f"state {name!r} is unchanged, and the program no longer refers to it, as after `{name} = ...`; what"
                f" has replaced it, if anything, is not saved; change it in place: {mend}"
            )
        if self._rebinding.is_all_lost:
            self._refuse("nothing that the program trains is saved; change the objects of state in place")

    def _refuse(self, message: str) -> NoReturn:
        """End the program with 2, for a mistake that only its steps show."""
        self._folder.notice(f"error: {message}")
        raise SystemExit(2)

    def _end(self) -> None:
        if self._stop.is_set:
            self._leave()
        super()._end()
        self._undo.enter_context(self._stop.immediate(self._raise_stopped))


run = Run
