"""Proves a training: undisturbed runs first, then one run for each fault, each compared with the undisturbed ones."""

import itertools
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from re import Pattern

from localvertex._base.lines import WriteLine
from localvertex._base.userinput.errors import UserError
from localvertex.errors import TaskFailed
from localvertex.jobs import CustomJob
from localvertex.prove import progress
from localvertex.prove.causes import Cause, causes
from localvertex.prove.comparison import BAD, Comparison, Judgement, compare
from localvertex.prove.disturbance import Disturbance
from localvertex.prove.faults import DEFAULT, FaultKind, Planned, file_events, plan
from localvertex.prove.numbers import Key, read_log
from localvertex.prove.outputs import Observation, lines, observe
from localvertex.prove.trial import ProofRun, run
from localvertex.prove.watch import State
from localvertex.runner.options import Options

_NUM_MORE = 3
"""Undisturbed runs, if the first two differ."""
_NUM_TRIES = 5
"""Tries of a fault, if the training ends before it."""
_LOOSE = 1e-3
"""Relative difference that sums in another order explain after many steps."""
_NOTHING = (
    "no numbers in the log, no arrays and no metrics to compare; print lines such as 'step 10 loss=0.5', or give "
    "--number 'loss is {loss} after {step}'"
)
_NOTHING_AFTER = "the run has left no value after the fault that undisturbed runs have as well"
_UNREAD = "the bytes of the model differ, and no reader reads it: save it as .npz, .h5, .keras or .safetensors"
_NO_KILL = "the training ended within the grace time, so no process was restarted"
_FOUND_STEPS = "the second undisturbed run did not train from the beginning: keep checkpoints in AIP_CHECKPOINT_DIR"


@dataclass(frozen=True, kw_only=True)
class Result:
    """The outcome of one fault."""

    fault: FaultKind
    verdict: Judgement
    reason: str = ""
    """Why it cannot be judged, or did not finish."""
    causes: list[Cause] = field(default_factory=list)
    comparison: Comparison = field(default_factory=Comparison)
    exit_codes: list[int] = field(default_factory=list)
    seconds_lost: float = 0.0
    processes_left: int = 0
    root: Path = Path()
    """The folder of the run, which stays if it is bad."""
    damaged: str = ""
    """The file that the fault has hit."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """The outcomes of all faults."""

    name: str
    seed: int
    num_undisturbed: int
    is_noisy: bool
    """Whether undisturbed runs differ."""
    results: list[Result]
    asked: Collection[FaultKind]
    """Faults that the user named."""

    @property
    def exit_code(self) -> int:
        """0; 1 for a fault with another end; 2 if nothing, or a fault that was asked for, can be judged."""
        unjudged = {each.fault for each in self.results if each.verdict is Judgement.CANNOT_BE_JUDGED}
        if any(each.verdict in BAD for each in self.results):
            return 1
        return 2 if unjudged & {*self.asked} or len(unjudged) == len(self.results) else 0


def prove(
    job: CustomJob,
    folder: Path,
    options: Options,
    *,
    seed: int,
    asked: Collection[FaultKind],
    patterns: Sequence[Pattern[str]],
    report: WriteLine,
    show: Callable[[Result], None],
) -> Proof:
    """Run the training without and with each fault, every time in a new folder.

    Args:
        job: What trains.
        folder: An empty folder; runs that ended differently stay in it.
        options: How the job runs.
        seed: Seed of the plan.
        asked: The faults; none: all.
        patterns: Which lines of the logs have numbers.
        report: Receives the cost.
        show: Receives each result.

    Raises:
        UserError: An undisturbed run fails, or has nothing that could be compared.
    """
    name, references, numbers = job.display_name, list[Observation](), itertools.count(1)

    def observed(trial: ProofRun) -> Observation:
        return observe(trial.base, trial.logs, patterns, started=trial.outcomes[-1].status.replicas[0].spans[-1].start)

    def run_undisturbed() -> Disturbance:
        try:
            trial = run(job, folder / f"undisturbed-{len(references) + 1}", options)
        except TaskFailed as error:
            raise UserError(f"{name} cannot be started: {error}") from None
        if not trial.has_finished:
            where = ", ".join(map(str, trial.logs))
            raise UserError(f"{name}: the undisturbed run failed: {trial.outcomes[-1].error}; its log: {where}")
        references.append(observed(trial))
        return trial.disturbance

    def first_step(checkpoints: State) -> Key | None:
        def steps(log: Path) -> list[Key]:
            return [each.key for each in read_log(log.stem, lines(log)[:-1], patterns) if each.name == curve]

        root, curve = folder / "start", progress.curve(references[0])
        trial = run(job, root, options, pace=pace, checkpoints=checkpoints, until=lambda log: bool(steps(log)))
        found = steps(trial.logs[0])
        shutil.rmtree(root, ignore_errors=True)
        return found[0] if found else progress.END if trial.has_finished else None

    def result_of(planned: Planned) -> Result:
        reason = ""
        for attempt in range(_NUM_TRIES):
            root = folder / f"{planned.kind}-{next(numbers)}"
            try:
                trial = run(job, root, options, replace(planned, fraction=planned.fraction * 0.75**attempt), pace)
            except TaskFailed as error:
                reason = str(error)
                break
            if not (reason := trial.problem):
                return judged(planned.kind, root, trial)
        return Result(fault=planned.kind, verdict=Judgement.CANNOT_BE_JUDGED, reason=reason)

    def at_file_events(planned: Planned) -> Result:
        counted, results = result_of(planned), list[Result]()
        for event, number in file_events(folder):
            result = result_of(replace(planned, event=event, draw=number))
            results.append(replace(result, reason=f"at {event}: {result.reason}".removesuffix(": ")))
        if not results:
            reason = counted.reason or "no call in its checkpoint folder was seen"
            return replace(counted, verdict=Judgement.CANNOT_BE_JUDGED, reason=reason)
        worst = max(results, key=lambda each: [*Judgement].index(each.verdict))
        return replace(worst, reason=f"{len(results)} kills") if worst.verdict is Judgement.EQUAL else worst

    def judged(kind: FaultKind, root: Path, trial: ProofRun) -> Result:
        rounding = {"rounding": _LOOSE} if kind is FaultKind.OTHER_WORKERS else {}
        left = observed(trial)
        comparison = compare(references, left, **rounding)
        verdict, reason = judge(kind, trial, comparison)
        points = left.get(progress.curve(references[0]), [])
        if verdict not in BAD and (lost := progress.lost(trial, pace, points, first_step)):
            verdict, reason = Judgement.PROGRESS_LOST, lost
        found = causes(kind, verdict, trial, comparison) if verdict in BAD else []
        shown = [known.causes for known in results if known.verdict in BAD]
        if kind is FaultKind.BIT_FLIPPED and shown:
            # A defect that other kills show is not due to the bit.
            found = next(filter(None, shown), [])
        if verdict not in BAD:
            shutil.rmtree(root, ignore_errors=True)
        return Result(
            fault=kind,
            verdict=verdict,
            root=root,
            reason=reason,
            causes=found,
            comparison=comparison,
            exit_codes=trial.exit_codes,
            seconds_lost=round(max(0.0, trial.disturbance.seconds - pace.seconds), 1),
            processes_left=trial.processes_left,
            damaged=trial.disturbance.damaged,
        )

    planned = [each for each in plan(seed, job) if each.kind in (asked or DEFAULT)]
    pace, number = run_undisturbed(), len(planned) + 2
    report(
        f"{name}: the first undisturbed run took {pace.seconds:.1f} s; {number} runs take about "
        f"{number * pace.seconds / 60:.1f} min, and {_NUM_MORE} more if undisturbed runs differ"
    )
    run_undisturbed()
    first, second = (sum(map(len, each.values())) for each in references)
    among = compare(references, references[0])
    if 2 * second < first or not among.num_compared:
        raise UserError(f"{name}: {_FOUND_STEPS if 2 * second < first else _NOTHING}")
    for _ in range(_NUM_MORE if among.is_noisy else 0):
        run_undisturbed()
    results: list[Result] = []
    for each in planned:
        results.append(at_file_events(each) if each.kind is FaultKind.FILE_EVENTS else result_of(each))
        show(results[-1])
    return Proof(
        name=name,
        seed=seed,
        num_undisturbed=len(references),
        is_noisy=among.is_noisy,
        results=results,
        asked=asked,
    )


def judge(kind: FaultKind, trial: ProofRun, comparison: Comparison) -> tuple[Judgement, str]:
    """Return the verdict on a run, and the reason for those that need one."""
    error = trial.outcomes[-1].error
    is_short = any(each.is_of_end for each in comparison.differences) or not comparison.num_compared
    if kind is FaultKind.SIGTERM and trial.exit_codes == [0] and is_short:
        return Judgement.DID_NOT_FINISH, "the program exited with 0 after SIGTERM, so the job has succeeded early"
    if kind is FaultKind.OTHER_WORKERS and trial.has_finished and comparison.differences:
        # Batches, dropout and learning rates may depend on it even in a correct training.
        reason = f"the numbers of this training depend on the number of workers: {comparison.differences[0]}"
        return Judgement.CANNOT_BE_JUDGED, reason
    if trial.has_finished:
        has_ended = kind in (FaultKind.SIGTERM, FaultKind.NOTICE) and trial.exit_codes == [0]
        reason = _UNREAD if comparison.is_model_unread else _NO_KILL if has_ended else ""
        return comparison.verdict, reason if comparison.num_compared else _NOTHING_AFTER
    if kind is FaultKind.BIT_FLIPPED and trial.is_refused:
        # No kill leaves such a file, and the program does not train on with it.
        return Judgement.CANNOT_BE_JUDGED, f"the program refuses the damaged checkpoint: {error}"
    return Judgement.DID_NOT_FINISH, error
