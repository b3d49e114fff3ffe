"""The loop of a training that resumes exactly, whatever framework it uses.

    with exact_resume.run("checkpoints/", steps=1000, state={"model": model}, code=[__file__]) as run:
        for step in run:
            run.log(loss=train(step))
        run.result(metrics={"accuracy": evaluate()})

`with` takes the lease, refuses another run in the folder and restores the newest intact checkpoint. `for` yields the
steps that are left. Between two steps it looks for a stop request, a notice or a save that is due, and saves in the
background. An exception never saves. The last step is saved before anything that comes after the loop.

Of several workers, the first one, the chief, writes. It grants blocks of steps, of some 2 s. After each, all exchange
what they have seen, and stop, save and end with the same step.
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
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NoReturn, Self

import numpy as np

from exact_resume import rehearsal, state as states
from exact_resume.checkpoints import checkpoints, identity as identities, result_file
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from exact_resume.errors import InputError, RunError, report_uncaught
from exact_resume.events import log as event_log
from exact_resume.files import storage
from exact_resume.rebinding import Rebinding
from exact_resume.run_folder import JOB_ID, RunFolder
from exact_resume.sampler import Sampler
from exact_resume.text import one_line, quote, report
from exact_resume.workers import place as places
from exact_resume.workers.deadline import Deadline, TimedOut
from exact_resume.workers.meeting import InFolder, refuse_difference
from exact_resume.workers.signals import StopRequest
from exact_resume.workers.team import OneWorker, SeveralWorkers, Team
from exact_resume.workers.watchdog import leave

_GRACE_SECONDS = 30.0
"""Between the notice and the end of a Spot machine
(https://cloud.google.com/compute/docs/instances/preemptible#preemption-process)."""
_LOOK_SECONDS = 0.05
"""Between two looks at notices and clocks, where steps are shorter."""
_EVENT_SECONDS = 2.0
"""Between two `steps` events."""
_STEPS_FIELDS = ("time", "event", "first_step", "last_step", "num_steps", "seconds")
"""Of the `steps` event."""


class Stopped(SystemExit):
    """A stop was requested and the checkpoint is saved; the exit code is 143 (SIGTERM) or 130 (Ctrl-C)."""


class Run:
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
            code: Files of code; another content is another run.
            save_every_steps: Save every so many steps; 0: not by steps.
            save_every_seconds: Save so long after the last save; 0: not by time; None: chosen from the cost of a save.
            keep_checkpoints: Number of newest checkpoints to keep.
            watchdog_seconds: Abort (134) after so long without a step; 0: never.
            peer_timeout_seconds: Abort (134) if another worker does not come or is silent for so long.
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
        self.rank, self.num_workers = self._place.rank, self._place.num_workers
        """Place of this worker, for `Sampler.shard`; the chief has rank 0."""
        self.step, self.num_steps = 0, steps
        """Number of steps done, and of the whole run."""
        self._directory = os.fspath(directory).rstrip("/")
        if not self._directory:
            # Perhaps from a variable that is not set.
            raise InputError("directory is empty or /; expected a folder for this run, such as checkpoints")
        self._tracer, self._rehearse = rehearsal.Tracer.of(os.environ, self.num_workers), rehearse
        if self._tracer:
            self._directory = self._tracer.directory
        # The given dict is not kept: whether the program refers to it decides what it can change.
        self._objects, self._sampler = dict(state), sampler
        self._identity = identities.of_run(steps, config or {}, sampler, code)
        self._every_steps, self._every_seconds, self._keep = save_every_steps, save_every_seconds, keep_checkpoints
        self._watchdog_seconds, self._peer_timeout_seconds = watchdog_seconds, peer_timeout_seconds
        self._reason, self._is_inside, self._is_finished, self._owes_save = "", False, False, False
        self._values: dict[str, list[Any]] = {}
        self._logged: dict[str, float] = {}
        self._first_step, self._num_seen, self._seconds = 0, 0, 0.0

    def __enter__(self) -> Self:
        """Take the folder and restore the newest checkpoint.

        Raises:
            InputError: The folder contains another run, the state cannot be saved, the workers differ, or the run does
                not resume exactly.
            NotHolder: Another job trains in the folder.
            SystemExit: Other workers did not come (134), or a stop was requested.
        """
        self._state = states.State(self._objects)
        self._identity |= {f"state.{path}": shape for path, shape in self._state.shapes.items()}
        if threading.current_thread() is not threading.main_thread():
            raise InputError("exact_resume.run is used in a thread; only the main thread receives signals")
        if self._rehearse and not self._tracer and not checkpoints.steps(self._directory):
            if self.num_workers > 1:
                raise InputError("rehearse is set, and there are several workers; expected one: leave it out here")
            if rehearsal.rehearse([sys.executable, *sys.orig_argv[1:]]) == 1:
                raise InputError("the rehearsal has shown that this run does not resume exactly; see above")
        self._handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        self._stop = StopRequest().install()
        self._folder = RunFolder(
            self._directory,
            self._identity,
            is_chief=not self.rank,
            stop=self._stop,
            report=report,
            observer=_print_notice,
            defaults={},
            way_on="give another folder, or restore the value",
        )
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
            self._watchdog = self._folder.watchdog
            self._log_start()
            self._restore()
            self._num_taken = self._state.num_taken()
            self._rebinding: Rebinding | None = None
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
                # Until the chief has written the result.
                self._team.exchange(None, lambda _: None, is_last=True)
                code = 0
        finally:
            if kind or code:
                self._team.fail()
            self._writer.close()
            self._flush(time.monotonic())
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

    def __iter__(self) -> Iterator[int]:
        """Return the steps that are left.

        Raises:
            InputError: It is not in a `with` block.
        """
        if not hasattr(self, "_undo"):
            raise InputError("the run has not begun; write `with exact_resume.run(...) as run:` around the loop")
        return self

    def __next__(self) -> int:
        """Return the next step; the first is 0.

        Raises:
            InputError: `finish` was called with this step, but not on all workers.
            RunError: The last step cannot be saved.
            Stopped: A stop was requested of any worker; the steps that are done are saved.
        """
        now = time.monotonic()
        if self._is_inside:
            self._note_step(now)
        is_alone = self.num_workers == 1
        if self.step >= self._look_at_step or (is_alone and (self._stop.signal_number or now >= self._look_at)):
            self._look(now)
        if self._has_ended:
            raise StopIteration
        self._is_inside, self._began = True, time.monotonic()
        return self.step

    def log(self, **values: Any) -> None:
        """Log numbers of this step, such as the loss; the event log has their means over some steps.

        Args:
            values: Numbers, or what `float` takes, such as a tensor with one value. They are read up to 2 s later.
        """
        for name, value in values.items():
            if name not in self._values:
                if name in _STEPS_FIELDS:
                    raise InputError(f"run.log has a field {name!r} of its own; give the number another name")
                self._values[name] = []
            # With its gradient, a tensor of PyTorch would keep the memory of its step.
            self._values[name].append(value.detach() if hasattr(value, "detach") else value)

    @property
    def logged(self) -> dict[str, float]:
        """Return the last value of each logged number, also in a finished run that is started again."""
        return self._logged | {name: _number(name, values[-1]) for name, values in self._values.items()}

    def finish(self, reason: str) -> None:
        """End the run with the present step, for example because the loss no longer falls; `break` may follow.

        All workers call it with the same step.

        Args:
            reason: One sentence, for result.json; the chief's counts.

        Raises:
            InputError: Not all workers called it with this step.
            RunError: The step cannot be saved.
            Stopped: A stop was requested of any worker.
        """
        if not self._is_inside:
            raise InputError("run.finish is called in the loop, with the step that is to be the last one")
        self._note_step(now := time.monotonic())
        self._reason = one_line(reason) or "finished"
        self._look(now)

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
        if self._is_finished or self.rank:
            return
        found = dict(metrics or {})
        for name, value in found.items():
            if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
                raise InputError(f"metric {name!r} is {quote(value)}; expected a finite number, such as float(value)")
            found[name] = float(value)
        path = os.fspath(model)
        if path and not (storage.exists(path) or storage.names(path)):
            raise InputError(f"model {path!r} does not exist; write it before run.result")
        result_file.write(
            self._directory,
            run_id=self._folder.run_id,
            identity=self._identity,
            final_step=self.step,
            stop_reason=self._reason or "all planned steps are done",
            best_step=self.step,
            fence=self._folder.lease.fence,
            num_planned_steps=self.num_steps,
            metrics=found,
            model={"path": path} if path else None,
            examples="in the sampler's order" if self._sampler else "not known",
        )
        self._is_finished = True
        report(f"run {self._folder.run_id} is finished after step {self.step}")

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        """Restore the global random generators afterwards, so that training continues as without the evaluation."""
        before = states.generators()
        self._watchdog.pause()
        try:
            yield
        finally:
            states.set_generators(before)
            if not self._has_ended:
                self._watchdog.beat()

    @property
    def _has_ended(self) -> bool:
        return self.step == self.num_steps or bool(self._reason)

    def _meet(self) -> Team:
        if self.num_workers == 1:
            return OneWorker()
        return SeveralWorkers(
            self._place,
            InFolder(self._place, self._directory, os.environ.get(JOB_ID, "")),
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

    def _restore(self) -> None:
        started = time.monotonic()
        if found := self._folder.newest(lambda own: self._team.exchange(None, lambda _: own)):
            self.step = found.step
            content = found.state
            self._state.put(content["objects"], found.arrays)
            # A worker that the run did not have keeps what the program has seeded.
            for first, tree in content["generators"][self.rank : self.rank + 1]:
                states.set_generators(states.read(tree, found.arrays[first:]))
            # Earlier versions have not saved what was logged.
            self._reason, self._logged = content["reason"], content.get("logged", {})
            self._is_finished = result_file.is_finished(self._directory, expected_run_id=self._folder.run_id)
            self._folder.log_event("restore", step=self.step, seconds=time.monotonic() - started)
            report(f"run {self._folder.run_id} resumes at step {self.step} of {self.num_steps}")
        else:
            report(f"run {self._folder.run_id} starts at step 0: no checkpoint in {self._directory!r}")
        self._writer = self._folder.writer(best=Best(), saved_step=self.step, keep=self._keep)
        self._saved_at = self._logged_at = self._look_at = time.monotonic()
        self._first_step, self._look_at_step = self.step, float(self.step)

    def _note_step(self, now: float) -> None:
        """Count the step that has just ended.

        Raises:
            InputError: It has put something into the state that cannot be saved.
        """
        self._is_inside = False
        self._seconds += now - self._began
        self.step += 1
        if self._tracer:
            self._tracer.note(self.step, self._values, *self._state.take())
            self._flush(now)
        self._num_seen += 1
        if self._num_seen == 1:
            # Not before the first save, which may come after hours; the moments of an optimizer are there now, too.
            started = time.monotonic()
            self._state.take()
            self._writer.copy_seconds = time.monotonic() - started
        # The first one often compiles.
        if self._num_seen == 2 and now - self._began > _GRACE_SECONDS:
            self._folder.notice(
                f"a step takes {now - self._began:.0f} s, longer than the {_GRACE_SECONDS:.0f} s between the notice and"
                " the end of a Spot machine, so the steps since the last save are repeated then; save more often"
            )

    def _look(self, now: float) -> None:
        """Look for notices and stop requests on all workers; save, stop or end if it is time, and log."""
        self._look_at = now + _LOOK_SECONDS
        if not self._rebinding and not self._has_ended:
            self._begin()
        self._owes_save = self._folder.log_preemptions() or self._owes_save
        if self._tracer and (self.step >= self._tracer.stop_step or self._has_ended):
            # Nothing after the loop runs.
            self._stop.signal_number = signal.SIGTERM
        at = {"step": self.step, "run.finish": bool(self._reason)}
        own = {"at": at, "stop": self._stop.signal_number, "save": self._owes_save}
        # Another worker may evaluate; each watches its own steps.
        self._watchdog.pause()
        stop, saves, self._reason, self._look_at_step = self._team.exchange(own, self._decide)
        self._watchdog.beat()
        if saves:
            self._report_rebinding()
            self._save()
        if stop:
            self._stop.signal_number = self._stop.signal_number or stop
            self._leave()
        if self._has_ended:
            self._end()
        elif now - self._logged_at >= _EVENT_SECONDS:
            self._flush(now)

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

    def _decide(self, reports: list[dict[str, Any]]) -> tuple[int, bool, str, float]:
        """Return a signal or 0, whether to save, why the run ends or nothing, and the step of the next look."""
        refuse_difference([each["at"] for each in reports], "call run.finish on all workers with the same step")
        stop = max(each["stop"] for each in reports)
        is_last = bool(stop) or self._has_ended
        self._writer.settle(wait=is_last)
        is_time = self._writer.is_time(self._saved_at, self._every_seconds)
        is_at_save = bool(self._every_steps) and self.step % self._every_steps == 0
        is_due = is_last or is_at_save or is_time or any(each["save"] for each in reports)
        until = min(self.num_steps, self._team.next_exchange(self.step))
        if self._tracer:
            until = min(until, self._tracer.stop_step)
        if self._every_steps:
            until = min(until, (self.step // self._every_steps + 1) * self._every_steps)
        return stop, is_due and self.step > self._writer.saved_step, self._reason, until

    def _save(self) -> None:
        """Copy the state, and begin to write it; the other workers only send their random generators."""
        started = time.monotonic()
        self._writer.settle(wait=True)
        own: states.Arrays = []
        tree = states.write(states.generators(), "generators", own)
        of_workers = [(tree, own)]
        if self.num_workers > 1:
            sent: list[Any] = []
            self._team.exchange([tree, [[each.dtype.name, each.tolist()] for each in own]], sent.extend)
            of_workers = [(tree, [np.array(numbers, kind) for kind, numbers in lists]) for tree, lists in sent]
        self._saved_at, self._owes_save = time.monotonic(), False
        if self.rank:
            return
        objects, arrays = self._state.take()
        generators = []
        for tree, found in of_workers:
            generators.append([len(arrays), tree])
            arrays += found
        checkpoint = Checkpoint(
            step=self.step,
            best=Best(),
            identity=self._identity,
            run_id=self._folder.run_id,
            arrays=arrays,
            state={"objects": objects, "generators": generators, "reason": self._reason, "logged": self.logged},
        )
        self._saved_at = time.monotonic()
        self._writer.write(checkpoint, pause_seconds=self._saved_at - started)

    def _end(self) -> None:
        """Save the last step before anything that follows the loop.

        Raises:
            RunError: It cannot be saved.
        """
        self._flush(time.monotonic())
        self._look_at = self._look_at_step = math.inf
        self._team.exchange(None, lambda _: self._writer.finish())
        # What follows the loop may take as long as it likes, and has nothing to save.
        self._watchdog.pause()
        self._undo.enter_context(self._stop.immediate(self._raise_stopped))

    def _leave(self) -> NoReturn:
        """End the program; the chief's last checkpoint is written before."""
        self._flush(time.monotonic())
        with contextlib.suppress(RunError):
            self._writer.finish()
        saved_step = self._team.exchange(None, lambda _: self._writer.saved_step, is_last=True)
        saved = f"the checkpoint of step {saved_step} is saved" if saved_step else "there is nothing to save yet"
        self._folder.notice(f"{self._stop.signal_name}: stopped after step {self.step}; {saved}")
        raise Stopped(self._stop.exit_code)

    def _flush(self, now: float) -> None:
        """Log the steps since the last event."""
        # After an exception, a wrong value of its step would hide it.
        self._logged = self.logged if self.step > self._first_step else self._logged
        logged, self._values = self._values, {}
        # After an exception, this step may have logged values and is not done.
        if self.step > self._first_step:
            means = {}
            for name, values in logged.items():
                means[name] = mean = sum(_number(name, each) for each in values) / len(values)
                if not math.isfinite(mean):
                    self._folder.notice(f"{name} is {mean} in the steps {self._first_step + 1} to {self.step}")
            self._folder.log_event(
                "steps",
                first_step=self._first_step + 1,
                last_step=self.step,
                num_steps=self.num_steps,
                seconds=self._seconds,
                **{name: mean for name, mean in means.items() if math.isfinite(mean)},
            )
        self._first_step, self._logged_at, self._seconds = self.step, now, 0.0


run = Run


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"run.log: {name} is {quote(value)}; expected numbers") from None


def _print_notice(event: str, **fields: Any) -> None:
    if event == "notice":
        report(fields["message"])
