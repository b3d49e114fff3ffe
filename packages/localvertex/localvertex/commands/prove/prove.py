"""Proves a training: undisturbed runs first, then one run for each fault, each compared with the undisturbed ones."""

import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from re import Pattern

from localvertex.commands.prove.causes import Cause, causes
from localvertex.commands.prove.comparison import Comparison, Verdict, compare, is_compared
from localvertex.commands.prove.faults import Kind, Planned, plan
from localvertex.commands.prove.outputs import Observation, observe
from localvertex.commands.prove.subject import Subject
from localvertex.commands.prove.trial import Trial, run
from localvertex.errors import TaskFailed
from localvertex.runner.options import Options
from localvertex_base.lines import WriteLine
from localvertex_base.userinput.errors import UserError

_NUM_MORE = 3
"""Undisturbed runs, if the first two differ."""
_NUM_TRIES = 5
"""Of a fault, if the training ends before it."""
_LOOSE = 1e-3
"""Relative difference that sums in another order explain after many steps."""
_GOOD = (Verdict.EQUAL, Verdict.WITHIN_NOISE)
_NOTHING = (
    "no numbers in the log, no arrays and no metrics to compare; print lines such as 'step 10 loss=0.5', or give "
    "--number 'loss is {loss} after {step}'"
)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came of one fault."""

    fault: Kind
    verdict: Verdict
    reason: str = ""
    """Why it cannot be judged, or did not finish."""
    causes: list[Cause] = field(default_factory=list)
    comparison: Comparison = field(default_factory=Comparison)
    exit_codes: list[int] = field(default_factory=list)
    seconds_lost: float = 0.0
    processes_left: int = 0
    damaged: str = ""
    """The file that the fault has hit."""
    observation: Observation = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What came of all faults."""

    name: str
    seed: int
    references: list[Observation]
    is_deterministic: bool
    results: list[Result]
    asked: Collection[Kind]
    """Faults that the user named."""

    @property
    def exit_code(self) -> int:
        """0; 1 for a fault with another end; 2 for one that was asked for and cannot be judged."""
        verdicts = {each.fault: each.verdict for each in self.results}
        unjudged = [kind for kind, verdict in verdicts.items() if verdict is Verdict.CANNOT_BE_JUDGED]
        if {Verdict.DIFFERENT, Verdict.DID_NOT_FINISH} & {*verdicts.values()}:
            return 1
        return 2 if {*self.asked} & {*unjudged} or len(unjudged) == len(verdicts) else 0


def prove(
    subject: Subject,
    folder: Path,
    options: Options,
    *,
    seed: int,
    asked: Collection[Kind],
    patterns: Sequence[Pattern[str]],
    report: WriteLine,
    show: Callable[[Result], None],
) -> Proof:
    """Run everything, in a new folder each.

    Args:
        subject: The training.
        folder: An empty folder; runs that ended differently stay in it.
        options: How the job runs.
        seed: Of the plan.
        asked: The faults; none: all.
        patterns: Which lines of the logs have numbers.
        report: Receives the cost.
        show: Receives each result.

    Raises:
        UserError: An undisturbed run fails, or has nothing that could be compared.
    """
    planned = [each for each in plan(seed, subject.job) if not asked or each.kind in asked]
    first = _undisturbed(subject, folder / "undisturbed-1", options)
    number = len(planned) + 2
    minutes = number * first.disturbance.seconds / 60
    report(
        f"{subject.name}: the first undisturbed run took {first.disturbance.seconds:.1f} s; {number} runs take about "
        f"{minutes:.1f} min, and {_NUM_MORE} more if undisturbed runs differ"
    )
    references = [observe(first.base, first.logs, patterns)]

    def add() -> None:
        trial = _undisturbed(subject, folder / f"undisturbed-{len(references) + 1}", options)
        references.append(observe(trial.base, trial.logs, patterns))

    add()
    different = compare(references[:1], references[1], rounding=0.0).differences
    names = [each.name for each in different if each.name in references[0] and is_compared(each.name, references[0])]
    values = [references[0][name][0].value for name in names]
    # Texts, and whole numbers such as a random state that no seed decides, have no noise.
    is_deterministic = all(isinstance(each, str) or each.dtype.kind not in "fc" for each in values)
    if not is_deterministic:
        for _ in range(_NUM_MORE):
            add()
    if not compare(references, references[0]).num_compared:
        raise UserError(f"{subject.name}: {_NOTHING}")
    results: list[Result] = []
    for each in planned:
        result = _judge(subject, folder, options, each, first, references, patterns)
        if each.kind is Kind.BIT_FLIPPED and result.causes:
            # What other kills show is no fault of the bit.
            result = replace(result, causes=next((known.causes for known in results if known.causes), result.causes))
        results.append(result)
        show(result)
    return Proof(
        name=subject.name,
        seed=seed,
        references=references,
        is_deterministic=is_deterministic,
        results=results,
        asked=asked,
    )


def _undisturbed(subject: Subject, folder: Path, options: Options) -> Trial:
    """Run the training without a fault.

    Raises:
        UserError: It fails.
    """
    try:
        trial = run(subject, folder, options)
    except TaskFailed as error:
        raise UserError(f"{subject.name} cannot be started: {error}") from None
    if not trial.has_finished:
        logs = ", ".join(map(str, trial.logs))
        raise UserError(f"{subject.name}: the undisturbed run failed: {trial.outcomes[-1].error}; its log: {logs}")
    return trial


def _judge(
    subject: Subject,
    folder: Path,
    options: Options,
    planned: Planned,
    first: Trial,
    references: Sequence[Observation],
    patterns: Sequence[Pattern[str]],
) -> Result:
    kind = planned.kind
    for attempt in range(_NUM_TRIES):
        root = folder / f"{kind}-{attempt + 1}"
        try:
            trial = run(subject, root, options, planned, first.disturbance)
        except TaskFailed as error:
            return Result(fault=kind, verdict=Verdict.CANNOT_BE_JUDGED, reason=str(error))
        if not trial.disturbance.problem:
            break
        planned = planned.earlier()
    else:
        return Result(fault=kind, verdict=Verdict.CANNOT_BE_JUDGED, reason=trial.disturbance.problem)
    found = observe(trial.base, trial.logs, patterns)
    loose = {"rounding": _LOOSE} if kind is Kind.OTHER_WORKERS else {}
    comparison = compare(references, found, **loose)
    verdict, reason = _verdict(kind, trial, comparison)
    is_bad = verdict in (Verdict.DIFFERENT, Verdict.DID_NOT_FINISH)
    if not is_bad:
        shutil.rmtree(root, ignore_errors=True)
    return Result(
        fault=kind,
        verdict=verdict,
        reason=reason,
        causes=causes(kind, verdict, trial, comparison, references[0], found) if is_bad else [],
        comparison=comparison,
        exit_codes=trial.exit_codes,
        seconds_lost=round(max(0.0, trial.disturbance.seconds - first.disturbance.seconds), 1),
        processes_left=trial.num_left,
        damaged=trial.disturbance.damaged,
        observation=found,
    )


def _verdict(kind: Kind, trial: Trial, comparison: Comparison) -> tuple[Verdict, str]:
    is_short = any(each.name.endswith("(last)") or each.found == "none" for each in comparison.differences)
    if kind is Kind.SIGTERM and trial.exit_codes == [0] and (is_short or not comparison.num_compared):
        return Verdict.DID_NOT_FINISH, "the program exited with 0 after SIGTERM, so the job has succeeded early"
    if trial.has_finished:
        return comparison.verdict, "" if comparison.num_compared else _NOTHING
    error = trial.outcomes[-1].error
    if kind is Kind.BIT_FLIPPED and trial.is_refused:
        # No kill leaves such a file, and the program does not train on with it.
        return Verdict.CANNOT_BE_JUDGED, f"the program refuses the damaged checkpoint: {error}"
    return Verdict.DID_NOT_FINISH, error
