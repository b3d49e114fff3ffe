"""The step `compare`: whether a model replaces the champion, by a metric or by both models' predictions."""

import dataclasses
import functools
from collections.abc import MutableMapping, Sequence
from typing import Any

import numpy as np

from components.any_code import evidence
from components.any_code.evidence import Evidence
from components.any_code.planning import goal_of
from components.any_code.request import Goal
from components.compare.criteria import Criteria
from components.compare.promotion import WITHOUT_CHAMPION, Outcome, Result, conclude, write_report
from components.registry import labels
from components.registry.registry import Registry, Version
from components.values import fields_of
from exact_resume.checkpoints import outcome
from exact_resume.files import storage
from localvertex_base.userinput.errors import UserError
from trainer.command_line import report_errors as report_errors  # a component imports it from here
from trainer.results.baseline import Judgement, Verdict, judge
from trainer.results.comparison.decision import decide, scores_of


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
        checkpoint_directory: Of the run.
        base_output_directory: Of the run.
        run_id: Of the run.
        inputs_sha256: Of the run.
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
    goal, criteria, own = goal_of(values), Criteria(**fields_of(Criteria, values)), evidence.read(checkpoint_directory)
    # Before the metric is judged: with another metric, the run is not trained again.
    outcome.note_completion(checkpoint_directory, run_id=run_id, inputs_sha256=inputs_sha256)
    value = own.value(goal.metric)
    metrics.update(own.figures)
    reason, refused = f"{goal.metric} {value:g}", None
    if goal.is_better(goal.minimum_metric, value):
        reason += f": worse than minimum_metric {goal.minimum_metric:g}"
        refused = Result(is_promoted=False, reason=reason)
    elif own.tests and goal.name_in_metrics and (judged := _judge(own, goal)).verdict != Verdict.BETTER:
        promotion = labels.UNDECIDED if judged.verdict == Verdict.UNDECIDED else ""
        refused = Result(is_promoted=False, reason=judged.reason.replace(" images", " examples"), promotion=promotion)
    if not model_name:
        reason += "; compared with nothing and not registered: model_name is empty"
        write_report(Result(is_promoted=False, reason=reason), comparison, metrics)
        return Outcome("", False, "", "", "")
    if not storage.names(f"{base_output_directory}/model"):
        raise UserError(f"{base_output_directory}/model has no model; the training code writes it to AIP_MODEL_DIR")
    return conclude(
        page_path=comparison,
        metrics=metrics,
        checkpoint_directory=checkpoint_directory,
        run_id=run_id,
        model_name=model_name,
        serving_image=serving_image,
        registry=Registry(region=region, pipeline_root=pipeline_root),
        deploy_endpoint=deploy_endpoint,
        criteria=criteria,
        refused=refused,
        alone=dataclasses.replace(WITHOUT_CHAMPION, reason=f"{reason}; there is no champion: compared with nothing"),
        against=functools.partial(against, own=own, goal=goal),
    )


def against(champion: Version, criteria: Criteria, *, own: Evidence, goal: Goal) -> Result:
    """Compare on the same examples if both models' predictions have ids, otherwise by the metric alone."""
    try:
        other = evidence.read_of_model(champion.artifact_uri)
        if own.tests and other.tests and goal.name_in_metrics:
            is_better, reason = _paired(own, other, goal.name_in_metrics, criteria)
        else:
            value, reference = own.value(goal.metric), other.value(goal.metric)
            is_better = goal.is_better(value, reference)
            word = "better" if is_better else "equal, so the champion stays" if value == reference else "worse"
            reason = f"{goal.metric} {value:g} against {reference:g} ({goal.direction}): {word}; whether both are of"
            reason += " the same examples, and which of them each model has seen, is unknown"
    except UserError as error:
        is_better = False
        reason = f"no comparison is possible: the champion's {error}; another model_name has no champion"
    promotion = labels.BETTER if is_better else ""
    return Result(is_promoted=is_better, reason=reason, promotion=promotion, champion=champion.name)


def _paired(own: Evidence, other: Evidence, metric: str, criteria: Criteria) -> tuple[bool, str]:
    """Compare the answers to the examples that both models have predicted, and neither has seen.

    Raises:
        UserError: There are too few, or they have other labels.
    """
    both = own.tests.keys() & other.tests.keys()
    ids = sorted(both - own.seen - other.seen)
    truth, labels_of_other = ([each.tests[name]["label"] for name in ids] for each in (own, other))
    if len(ids) < criteria.min_compared_images or truth != labels_of_other:
        raise UserError(
            f"predictions have {len(ids):,} unseen examples in common with the new model's, fewer than"
            f" min_compared_images {criteria.min_compared_images:,}, or other labels"
        )
    classes, expected, champion, challenger = _numbered(ids, other, own)
    table, scores = scores_of(metric, expected, champion, challenger, len(classes))
    is_better, reason = decide(table, max_regression=0.0, must_improve=criteria.must_improve, scores=scores)
    reason = reason.replace(" images", " examples")
    if not scores.difference:
        is_better, reason = False, f"{reason}, so the champion stays"
    unknown = "" if own.seen and other.seen else "; which of them the models have seen is unknown"
    return is_better, f"{reason}; the same examples for both, {len(both) - len(ids):,} left out as seen{unknown}"


def _judge(own: Evidence, goal: Goal) -> Judgement:
    """Compare the predictions with the best constant answer: a model that has learnt nothing is no champion."""
    classes, expected, answers = _numbered(sorted(own.tests.keys() - own.seen), own)
    constant = int(np.bincount(expected).argmax()) if len(expected) else 0
    return judge(goal.name_in_metrics, expected, answers, constant, [*classes, "another class"])


def _numbered(ids: Sequence[str], *models: Evidence) -> tuple[Any, ...]:
    """Return the classes, the true one of each example as a number, and the predictions of each model likewise."""
    truth = [models[0].tests[name]["label"] for name in ids]
    classes = {name: number for number, name in enumerate(sorted(set(truth)))}
    predicted = ([classes.get(each.tests[name]["prediction"], len(classes)) for name in ids] for each in models)
    return [*classes], np.array([classes[name] for name in truth], np.int64), *(np.array(each) for each in predicted)
