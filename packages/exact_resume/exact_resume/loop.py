"""Decide when a training validates, saves, stops and ends: one loop for every way to train.

It hands out blocks of steps. Between two blocks it looks for a stop request, a notice, a save that is due and the end,
and saves in the background. An exception never saves. The last step is saved before anything that comes after the loop.

Of several workers, the first one, the chief, writes. It decides how long a block is, some 2 s. After each, all exchange
what they have seen, and stop, save and end with the same step.
"""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, Self

from exact_resume.checkpoints import checkpoints, result_file
from exact_resume.checkpoints.checkpoints import Arrays, Best, Checkpoint
from exact_resume.checkpoints.early_stopping import EarlyStopping, Validations, with_score
from exact_resume.errors import InputError, RunError
from exact_resume.run_folder import RunFolder
from exact_resume.text import one_line, quote
from exact_resume.workers.meeting import refuse_difference
from exact_resume.workers.signals import StopRequest
from exact_resume.workers.team import Pace, Team

_GRACE_SECONDS = 30.0
"""Time between the notice and the end of a Spot machine
(https://cloud.google.com/compute/docs/instances/preemptible#preemption-process)."""
_LOOK_SECONDS = 0.05
"""Interval between two looks at notices and clocks, if steps are shorter."""
_EVENT_SECONDS = 2.0
"""Interval between two `steps` events."""
_STEPS_FIELDS = ("time", "event", "first_step", "last_step", "num_steps", "seconds")
"""Fields of the `steps` event."""


class Stopped(SystemExit):
    """A stop was requested and the checkpoint is saved; the exit code is 143 (SIGTERM) or 130 (Ctrl-C)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Block:
    """Steps, or parts of a validation, to be done without a look at anything else."""

    first_step: int
    """Number of steps that are done before the block."""
    num_steps: int
    """0 if only the validation of the last step is left to do."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Schedule:
    """The times at which a loop does what."""

    num_steps: int
    """Number of steps of the whole run."""
    save_every_steps: int = 0
    """0: not by steps."""
    save_every_seconds: float | None = None
    """0: not by time; None: `exact_resume.checkpoints.async_writer.best_interval`."""
    keep_checkpoints: int = 3
    validate_every_steps: int = 0
    """A validation is due after this many steps, and after the last one; 0: never."""
    early_stopping: EarlyStopping = dataclasses.field(default_factory=EarlyStopping)

    def validates(self, step: int) -> bool:
        """Return whether a validation is due after a number of steps."""
        every = self.validate_every_steps
        return bool(every and step) and (step % every == 0 or step == self.num_steps)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Content:
    """The state of the trained objects in a checkpoint."""

    arrays: Arrays
    state: Any = None
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class Loop:
    """Decides between blocks of steps. A kind of training says what a checkpoint has, by `copy` and `put`."""

    def __init__(self, schedule: Schedule, *, rank: int = 0, num_workers: int = 1) -> None:
        """Prepare; nothing is read or written."""
        self.schedule = schedule
        self.rank, self.num_workers = rank, num_workers
        """Place of this worker, for `Sampler.shard`; the chief has rank 0."""
        self.step, self.num_steps = 0, schedule.num_steps
        """Number of steps done, and of the whole run."""
        self._boundaries: set[int] = set()
        self._reason, self._is_finished, self._owes_save, self._is_improved = "", False, False, False
        self.best, self._history = Best(), Validations()
        """The best step by its score, even if its checkpoint is lost."""
        self._validated_step, self._lost_step, self._saved = 0, 0, (0, True)
        self._block_size, self._is_inside, self._has_blocks = 1, False, False
        self._num_noted, self._pace, self._paced = 0, Pace(), (0, 0.0)
        self._after_block: Callable[[float], object] | None = None
        self._values: dict[str, list[Any]] = {}
        self._logged: dict[str, float] = {}
        self._first_step, self._seconds, self._logged_seconds, self._began = 0, 0.0, 0.0, 0.0

    # What a kind of training adds.

    def copy(self) -> Content:
        """Return copies of the trained state; only the chief's are saved."""
        raise NotImplementedError

    def put(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint."""
        raise NotImplementedError

    def epoch(self, step: int) -> dict[str, float]:
        """Return the field of events that says how many epochs a number of steps are, if there are epochs."""
        del step
        return {}

    def aside(self) -> contextlib.AbstractContextManager[None]:
        """Restore the training's random generators after a validation or an evaluation."""
        return contextlib.nullcontext()

    def before_look(self) -> None:
        """Carry out what is due before the workers exchange what they have seen."""

    def before_save(self) -> None:
        """Exchange with the other workers their parts of a checkpoint."""

    # The run.

    def begin(self, folder: RunFolder, team: Team, stop: StopRequest) -> None:
        """Restore the newest checkpoint.

        Args:
            folder: The open folder, whose lease this process holds.
            team: The other workers.
            stop: Stop requests of this process.

        Raises:
            InputError: The folder contains another run.
            OSError: A checkpoint cannot be read now; nothing was removed.
        """
        self._folder, self._team, self._stop, self._watchdog = folder, team, stop, folder.watchdog
        started = time.monotonic()
        if found := folder.newest(lambda own: team.exchange(None, lambda _: own)):
            self.step, self.best, self._history = found.step, found.best, found.validations
            self._validated_step, self._saved = found.step * found.is_validated, (found.step, found.is_validated)
            self._reason = found.reason
            self.put(found)
            self._is_finished = result_file.is_finished(folder.directory, expected_run_id=folder.run_id)
            folder.log_event("restore", step=self.step, seconds=time.monotonic() - started)
        self._writer = folder.writer(best=self.best, saved_step=self.step, keep=self.schedule.keep_checkpoints)
        self._saved_at = self._logged_at = self._look_at = time.monotonic()
        self._first_step, self._look_at_step, self._paced = self.step, float(self.step), (self.step, 0.0)

    def close(self) -> None:
        """Log the last steps, and wait for a checkpoint that is being written."""
        self._writer.close()
        self._flush(time.monotonic())

    def boundary(self, step: int) -> None:
        """Let no block of steps cross this number of steps, where something changes, such as the trained variables."""
        self._boundaries.add(step)

    def blocks(self) -> Iterator[Block]:
        """Yield the steps that are left, in blocks of some 2 s.

        A block does not cross a save by steps, a validation or a `boundary`.

        Raises:
            InputError: The run has not begun, a validation was left out, or `finish` was not called on all workers.
            RunError: The last step cannot be saved.
            Stopped: A stop was requested of any worker; the steps that are done are saved.
        """
        self._refuse_unbegun()
        self._has_blocks = True
        while True:
            self._end_block()
            if self._num_noted and self.is_validation_due:
                raise InputError(
                    f"the validation after step {self.step} was left out; expected `for part in run.validation(n)` to"
                    " its end and run.score(...) in each block"
                )
            if self._look_at_step < math.inf:
                self._look(time.monotonic())
            if self._has_ended:
                return
            self._block_size = 0 if self.is_validation_due else int(self._look_at_step) - self.step
            self._is_inside, self._began = True, time.monotonic()
            yield Block(first_step=self.step, num_steps=self._block_size)

    def __iter__(self) -> Self:
        """Return the steps that are left.

        Raises:
            InputError: It has not begun, or validations are due, which need blocks.
        """
        self._refuse_unbegun()
        if self.schedule.validate_every_steps:
            raise InputError("validate_every_steps is for `for block in run.blocks()`; leave it out for single steps")
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
            self._note_block(now)
        is_alone = self.num_workers == 1
        if self.step >= self._look_at_step or (is_alone and (self._stop.signal_number or now >= self._look_at)):
            self._look(now)
        if self._has_ended:
            raise StopIteration
        self._is_inside, self._began = True, time.monotonic()
        return self.step

    @property
    def is_validation_due(self) -> bool:
        """Whether the step that has just been done is to be validated."""
        step = self.step + self._block_size * self._is_inside
        return self.schedule.validates(step) and self._validated_step != step and not self._reason

    def validation(self, num_parts: int) -> Iterator[int]:
        """Yield the parts of the validation if it is due, otherwise nothing; the first is 0.

        A stop request or a notice waits for one part, and for 2 s with several workers. A part changes nothing that the
        run saves.
        """
        for block in self.validation_blocks(num_parts, is_single=self.num_workers == 1):
            yield from range(block.first_step, block.first_step + block.num_steps)

    def validation_blocks(self, num_parts: int, *, is_single: bool = False) -> Iterator[Block]:
        """Yield the parts of the validation, as `validation` does, in blocks of some 2 s, or one by one.

        Raises:
            InputError: It is not in a block of steps.
            Stopped: A stop was requested of any worker; the step is saved, and validated by the next start.
        """
        if not self._has_blocks:
            raise InputError("run.validation was called outside of `for block in run.blocks():`; call it in its body")
        self._end_block()
        if not self.is_validation_due:
            return
        pace, first, self._validation_began = Pace(), 0, time.monotonic()
        self._flush(self._validation_began)
        with self.aside():
            while first < num_parts:
                stop, saves, size = self._exchange({"num_parts": pace.num_steps}, self._decide_in_validation)
                if saves:
                    self._save()
                if stop:
                    self._leave()
                size, started = min(1 if is_single else size, num_parts - first), time.monotonic()
                yield Block(first_step=first, num_steps=size)
                pace.record(size, time.monotonic() - started)
                first += size
        self._validated_step = self.step

    def score(
        self,
        *,
        accuracy: float | None = None,
        loss: float | None = None,
        score: float | None = None,
        metric: str = "score",
    ) -> None:
        """Note how good the model is after this step; the best step is kept, and is the model of the run.

        The higher `score` is better, without one the higher accuracy, and of equal values the lower loss. In `blocks`
        nothing happens unless the validation was due.

        Args:
            accuracy: Share of right answers on the validation data.
            loss: Loss on the validation data.
            score: Value of another metric, which decides.
            metric: Its name, for the event log.

        Raises:
            InputError: No validation is ever due.
            RunError: A number is not finite.
        """
        if self._has_blocks and not self.schedule.validate_every_steps:
            raise InputError("run.score needs a validation; expected exact_resume.run(..., validate_every_steps=N)")
        step = self.step + self._is_inside * self._block_size
        if self._has_blocks and self._validated_step != step:
            return
        given = {"loss": loss, "accuracy": accuracy, "score": score}
        numbers = {name: float(value) for name, value in given.items() if value is not None}
        if not numbers or not all(map(math.isfinite, numbers.values())):
            raise RunError(
                f"run.score got {numbers or 'no number'} after step {step}; expected finite numbers; a lower learning"
                " rate may help"
            )
        found, now = Best(step=step, **numbers), time.monotonic()
        is_best = self.best.is_beaten_by(found)
        self._folder.log_event(
            "evaluate",
            split="validation",
            step=step,
            **self.epoch(step),
            **{name: value for name, value in numbers.items() if name != "score"},
            **({} if score is None else {"metric": metric, "score": numbers["score"]}),
            is_best=is_best,
            seconds=now - (self._validation_began if self._has_blocks else now),
        )
        self._history = with_score(self._history, found)
        # Also in a loop of single steps, the best is saved at once, and the run ends with this step if it is to.
        self._look_at_step = min(self._look_at_step, step)
        if is_best:
            # Even if it cannot be saved, the scores alone determine the best step.
            self.best, self._is_improved = found, True

    def log(self, **values: Any) -> None:
        """Log numbers of this step or block, such as the loss; the event log has their means over some steps.

        Args:
            values: Numbers, or values that `float` accepts, such as a tensor of size 1. They are read up to 2 s later.
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
        """Return the last value of each logged number, even in a finished run that is started again."""
        return self._logged | {name: _number(name, values[-1]) for name, values in self._values.items()}

    @property
    def saved_step(self) -> int:
        """Step of the newest checkpoint, once it is written; 0: no checkpoint."""
        self._writer.settle(wait=True)
        return self._writer.saved_step

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
        if not self._is_inside and not self._has_blocks:
            raise InputError("run.finish is called in the loop, with the step that is to be the last one")
        self._end_block()
        self._reason = one_line(reason) or "finished"
        self._look(time.monotonic())

    def write_result(self, **fields: Any) -> None:
        """Mark the run as finished, with `result.json`, as the chief. A best checkpoint that is lost is named there.

        Args:
            fields: Fields besides those of the run.
        """
        kept = checkpoints.best_kept(self._folder.directory, self.best, self._history)
        scores = {"validation_accuracy": kept.accuracy, "validation_loss": kept.loss} if self._history else {}
        if kept.score is not None:
            scores |= {"score": kept.score}
        result_file.write(
            self._folder.directory,
            run_id=self._folder.run_id,
            identity=self._folder.identity,
            final_step=self.step,
            stop_reason=self._reason or "all planned steps are done",
            best_step=kept.step if self._history else self.step,
            fence=self._folder.lease.fence,
            num_planned_steps=self.num_steps,
            lost_best_step=self.best.step if kept != self.best else None,
            **scores,
            **fields,
        )
        self._is_finished, self._lost_step = kept == self.best, self.best.step if kept != self.best else 0

    def end(self) -> None:
        """Wait, as a worker other than the chief, until the result is written.

        Raises:
            RunError: The best checkpoint is lost.
        """

        def refuse_lost(_: object) -> None:
            if self._lost_step:
                message = result_file.lost_best_message(self._lost_step)
                self._folder.notice(message)
                raise RunError(message)

        self._team.exchange(None, refuse_lost, is_last=True)

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        """Pause the watchdog; training continues afterwards as if there had been no evaluation."""
        self._watchdog.pause()
        try:
            with self.aside():
                yield
        finally:
            if not self._has_ended:
                self._watchdog.beat()

    @property
    def _has_ended(self) -> bool:
        return bool(self._reason) or (self.step == self.num_steps and not self.is_validation_due)

    def _refuse_unbegun(self) -> None:
        if not hasattr(self, "_writer"):
            raise InputError("the run has not begun; write `with exact_resume.run(...) as run:` around the loop")

    def _end_block(self) -> None:
        if self._is_inside:
            self._note_block(time.monotonic())

    def _note_block(self, now: float) -> None:
        """Count the steps of the block that has just ended.

        Raises:
            InputError: It has put something into the state that cannot be saved.
        """
        seconds = now - self._began
        self._is_inside = False
        self.step += self._block_size
        self._seconds += seconds
        if self._after_block:
            self._after_block(now)
        if self._num_noted < 2 and self._block_size:
            self._num_noted += 1
            if self._num_noted == 1:
                # Not before the first save, which may come after hours; an optimizer has its moments by now.
                started = time.monotonic()
                self.copy()
                self._writer.copy_seconds = time.monotonic() - started
            # The first one often compiles.
            elif (each := seconds / self._block_size) > _GRACE_SECONDS:
                self._folder.notice(
                    f"a step takes {each:.0f} s, longer than the {_GRACE_SECONDS:.0f} s between the notice and the end"
                    " of a Spot machine, so the steps since the last save are repeated then; save more often"
                )

    def _look(self, now: float) -> None:
        """Look for notices and stop requests on all workers; save, stop or end if it is time, and log."""
        self._look_at = now + _LOOK_SECONDS
        self.before_look()
        at = {"step": self.step, "run.finish": bool(self._reason)}
        stop, saves, self._reason, self._look_at_step = self._exchange({"at": at}, self._decide)
        if saves:
            self._save()
        if self._has_ended:
            self._end()
        elif stop:
            self._leave()
        elif self._has_blocks or now - self._logged_at >= _EVENT_SECONDS:
            self._flush(now)

    def _exchange(self, own: dict[str, Any], decide: Callable[[list[dict[str, Any]]], Any]) -> Any:
        """Exchange stop requests and notices, beside a worker's own message; return what the chief decides."""
        self._owes_save = self._folder.log_preemptions() or self._owes_save
        own |= {"stop": self._stop.signal_number, "save": self._owes_save}
        # Another worker may evaluate; each watches its own steps.
        self._watchdog.pause()
        decided = self._team.exchange(own, decide)
        self._watchdog.beat()
        self._stop.signal_number = self._stop.signal_number or decided[0]
        return decided

    def _decide(self, reports: list[dict[str, Any]]) -> tuple[int, bool, str, int]:
        """Return a signal or 0, whether to save, why the run ends or nothing, and the step of the next look."""
        refuse_difference([each["at"] for each in reports], "call run.finish on all workers with the same step")
        stop = max(each["stop"] for each in reports)
        schedule = self.schedule
        if not self._reason and self.step < self.num_steps and schedule.early_stopping.is_due(self._history):
            self._reason = schedule.early_stopping.describe()
        is_last = bool(stop) or self._has_ended
        self._writer.settle(wait=is_last)
        is_time = self._writer.is_time(self._saved_at, schedule.save_every_seconds)
        is_at_save = bool(schedule.save_every_steps) and self.step % schedule.save_every_steps == 0
        is_due = is_last or is_at_save or is_time or self._is_improved or any(each["save"] for each in reports)
        stops = [self.num_steps, *(step for step in self._boundaries if step > self.step)]
        if self._has_blocks or len(reports) > 1:
            first_step, first_seconds = self._paced
            if self.step > first_step:
                self._pace.record(self.step - first_step, self._seconds - first_seconds)
            self._paced = (self.step, self._seconds)
            stops.append(self.step + self._pace.num_steps)
        for every in filter(None, (schedule.save_every_steps, schedule.validate_every_steps)):
            stops.append((self.step // every + 1) * every)
        return stop, is_due and self._is_new, self._reason, min(stops)

    def _decide_in_validation(self, reports: list[dict[str, Any]]) -> tuple[int, bool, int]:
        """Return a signal or 0, whether to save, and the number of parts until the next look."""
        stop = max(each["stop"] for each in reports)
        self._writer.settle(wait=bool(stop))
        is_due = bool(stop) or any(each["save"] for each in reports)
        return stop, is_due and self._is_new, reports[0]["num_parts"]

    @property
    def _is_new(self) -> bool:
        """Whether a checkpoint of this step would contain more than the newest one."""
        step, is_validated = self._saved
        return self.step > self._writer.saved_step or (self.step == step and not is_validated and self._is_validated)

    @property
    def _is_validated(self) -> bool:
        return not self.is_validation_due

    def _save(self) -> None:
        """Copy the trained state, and begin to write it."""
        started = time.monotonic()
        self._writer.settle(wait=True)
        self.before_save()
        self._saved_at, self._owes_save, self._is_improved = time.monotonic(), False, False
        self._saved = (self.step, self._is_validated)
        if self.rank:
            return
        content = self.copy()
        checkpoint = Checkpoint(
            step=self.step,
            best=self.best,
            identity=self._folder.identity,
            run_id=self._folder.run_id,
            arrays=content.arrays,
            is_validated=self._is_validated,
            validations=self._history,
            reason=self._reason,
            state=content.state,
            extra=content.extra,
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
        if self.step < self.num_steps and not self._is_finished:
            self._folder.notice(f"stopped early at step {self.step}: {self._reason}")

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
                seconds=self._seconds - self._logged_seconds,
                **{name: mean for name, mean in means.items() if math.isfinite(mean)},
            )
        self._first_step, self._logged_at, self._logged_seconds = self.step, now, self._seconds


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"run.log: {name} is {quote(value)}; expected numbers") from None
