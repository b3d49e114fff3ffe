"""The step `compare`: whether a model replaces the champion, by a metric or by both models' predictions."""

import dataclasses
from collections.abc import MutableMapping
from typing import Any

from components.any_code import evidence
from components.any_code.evidence import PREDICTIONS_FILE, Evidence, examples
from components.any_code.measures import Measure, measure_of
from components.any_code.planning import goal_of
from components.any_code.request import Goal
from components.compare.criteria import Criteria
from components.compare.promotion import WITHOUT_CHAMPION, Outcome, Result, conclude, write_report
from components.registry import labels
from components.registry.registry import Version
from exact_resume.files import storage
from localvertex._base.userinput.errors import UserError
from trainer.command_line import report_errors as report_errors  # a component imports it from here
from trainer.results import outcome
from trainer.results.baseline import Verdict
from trainer.settings import from_values

_TOLERANCE = 0.005
"""How far a figure may be from its own predictions, absolute up to 1 and relative above: two decimal places."""


def compare(
    *,
    comparison: str,
    metrics: MutableMapping[str, Any],
    checkpoint_directory: str,
    base_output_directory: str,
    run_id: str,
    inputs_sha256: str,
    model_name: str,
    serving_image: str,
    deploy_endpoint: str,
    region: str,
    pipeline_root: str,
    **values: Any,
) -> Outcome:
    """Note that the training has succeeded, then compare its model with the champion.

    Args:
        comparison: File for the HTML page.
        metrics: Receives the figures.
        checkpoint_directory: Checkpoint folder of the run.
        base_output_directory: Output folder of the run.
        run_id: Id of the run.
        inputs_sha256: Digest of the inputs of the run.
        model_name: Display name in the Model Registry; empty: nothing is compared and registered.
        serving_image: Container image to register the model with.
        deploy_endpoint: Display name of the endpoint for a promoted model; empty: it is not deployed.
        region: Region of the Model Registry.
        pipeline_root: Folder or gs:// prefix of the run.
        **values: Fields of `Goal` and `Criteria`.

    Raises:
        UserError: `result.json` or the metric is missing or not usable, there is no model, or the registry cannot be
            queried.
    """
    goal, criteria, own = goal_of(values), from_values(Criteria, values), evidence.read(checkpoint_directory)
    # Before the metric is judged: with another metric, the run is not trained again.
    outcome.note_completion(checkpoint_directory, run_id=run_id, inputs_sha256=inputs_sha256)
    value = goal.check(f"{goal.metric} in result.json", own.value(goal.metric))
    metrics.update(own.figures)
    reason, refused, overruled = f"{goal.metric} {value:g}", None, ""
    found = _judge(own, goal, value)
    if goal.is_better(goal.minimum_metric, value):
        refused = Result(is_promoted=False, reason=f"{reason}: worse than minimum_metric {goal.minimum_metric:g}")
    elif found.is_promoted:
        reason += found.reason
    elif criteria.force_promotion:
        overruled = found.reason
    else:
        refused = dataclasses.replace(found, can_be_forced=True)
    if not model_name:
        reason = (
            f"{refused.sentence if refused else reason}; compared with nothing and not registered: model_name is empty"
        )
        write_report(Result(is_promoted=False, reason=reason), comparison, metrics)
        return Outcome("", False, "", "", "")
    if not storage.names(f"{base_output_directory}/model"):
        raise UserError(f"{base_output_directory}/model has no model; the training code writes it to AIP_MODEL_DIR")
    return conclude(
        comparison=comparison,
        metrics=metrics,
        checkpoint_directory=checkpoint_directory,
        run_id=run_id,
        model_name=model_name,
        serving_image=serving_image,
        region=region,
        pipeline_root=pipeline_root,
        deploy_endpoint=deploy_endpoint,
        refused=refused,
        alone=_overrule(
            dataclasses.replace(WITHOUT_CHAMPION, reason=f"{reason}; there is no champion: compared with nothing"),
            overruled,
        ),
        against=lambda *given: _overrule(against(*given, own=own, goal=goal), overruled),
        **dataclasses.asdict(criteria),
    )


def against(champion: Version, criteria: Criteria, *, own: Evidence, goal: Goal) -> Result:
    """Compare on the examples that are evidence; by the metric alone if the champion's predictions do not show it."""
    promotion = ""
    try:
        other = evidence.read_of_model(champion.artifact_uri)
        recorded = goal.check(f"{goal.metric} in result.json", other.value(goal.metric))
        measure = _measure(goal, other)
        if measure and goal.meaning.is_claim_checked:
            found = examples(own, other, answer=measure.answer, fewest=criteria.min_compared_images)
            is_better, reason = False, f"no comparison with the champion is possible: {found.problem}"
            if found.problem:
                promotion = labels.UNDECIDED
            else:
                is_better, reason = measure.compare(found, must_improve=criteria.must_improve)
            notes = [
                *found.notes,
                *["which of them the models have seen is unknown"] * (not own.seen or not other.seen),
            ]
            reason = "; ".join([reason.replace(" images", " examples"), f"its recorded value is {recorded:g}", *notes])
        else:
            value = own.value(goal.metric)
            is_better = goal.is_better(value, recorded)
            word = "better" if is_better else "equal, so the champion stays" if value == recorded else "worse"
            reason = f"{goal.metric} {value:g} against {recorded:g} ({goal.meaning.direction}): {word}; whether both"
            reason += " are of the same examples, and which of them each model has seen, is unknown"
            reason += (
                f"; not checked: {PREDICTIONS_FILE} does not show it" if own.tests and not _measure(goal, own) else ""
            )
    except UserError as error:
        is_better = False
        reason = f"no comparison is possible: the champion's {error}; another model_name has no champion"
    if not is_better and criteria.force_promotion:
        better = Result(is_promoted=True, reason="", promotion=labels.BETTER, champion=champion.name)
        return _overrule(better, reason)
    return Result(
        is_promoted=is_better,
        reason=f"{reason}; registered without the alias champion" if promotion else reason,
        promotion=labels.BETTER if is_better else promotion,
        champion=champion.name,
        can_be_forced=bool(promotion),
    )


def _overrule(result: Result, reason: str) -> Result:
    """Return a promotion as one by force_promotion, if there is a reason against it."""
    if not reason or not result.is_promoted:
        return result
    reasons = "; ".join(filter(None, (reason, result.reason)))
    return dataclasses.replace(result, reason=reasons, promotion=labels.FORCED, is_forced=True)


def _measure(goal: Goal, found: Evidence) -> Measure | None:
    """Return the measure of the metric; None if the predictions have no field that shows it."""
    measure = measure_of(goal.meaning.measure, (line["label"] for line in found.tests.values()))
    return measure if measure and any(measure.answer in line for line in found.tests.values()) else None


def _judge(own: Evidence, goal: Goal, value: float) -> Result:
    """Compare the predictions with the best constant answer, and the figures with the predictions."""
    if odd := sorted(
        name for name, each in own.metrics.items() if type(each) in (int, float) and name not in own.figures
    ):
        return Result(is_promoted=False, reason=f"{odd[0]} is not finite in result.json: {own.metrics[odd[0]]!r:.20}")
    measure = _measure(goal, own)
    if measure is None:
        unchecked = f"; not checked: {PREDICTIONS_FILE} does not show it" if own.tests or own.seen else ""
        return dataclasses.replace(WITHOUT_CHAMPION, reason=unchecked)
    found = examples(own, answer=measure.answer)
    if not found.labels:
        reason = "no test example is unseen: all ids are in other splits as well"
        return Result(is_promoted=False, reason=reason, promotion=labels.UNDECIDED)
    judged = measure.judge(found)
    if judged.verdict != Verdict.BETTER:
        promotion = labels.UNDECIDED if judged.verdict == Verdict.UNDECIDED else ""
        return Result(is_promoted=False, reason=judged.reason.replace(" images", " examples"), promotion=promotion)
    shown = measure.values(found)
    if goal.meaning.is_claim_checked and not any(
        abs(each - value) <= _TOLERANCE * max(1, abs(each)) + 1e-9 for each in shown
    ):
        reason = f"{goal.metric} is {value:g} in result.json, but {shown[0]:.4g} by {PREDICTIONS_FILE}"
        return Result(is_promoted=False, reason=f"{reason}; expected the figure of the same test examples")
    return dataclasses.replace(WITHOUT_CHAMPION, reason="")
