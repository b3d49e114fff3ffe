"""The step `compare`: whether a model replaces the champion, by a metric or by both models' predictions."""

import dataclasses
from collections.abc import MutableMapping
from typing import Any

import numpy as np

from components.any_code import evidence
from components.any_code.evidence import Evidence
from components.any_code.request import DIRECTIONS, Goal, read_goal
from components.compare.criteria import Criteria
from components.compare.promotion import WITHOUT_CHAMPION, Outcome, Result, conclude, write_report
from components.registry import labels
from components.registry.registry import Registry, Version
from components.values import fields_of
from exact_resume.checkpoints import outcome
from exact_resume.files import storage
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import quote
from trainer.command_line import report_errors as report_errors  # a component imports it from here
from trainer.models.metrics import METRICS
from trainer.results.comparison.decision import decide, scores_of

_ADVICE = "; to compare it with no champion, give another model_name"


def compare(
    *,
    page_path: str,
    metrics: MutableMapping[str, Any],
    checkpoint_directory: str,
    base_output_directory: str,
    run_id: str,
    inputs_sha256: str,
    model_name: str,
    serving_image: str,
    region: str,
    pipeline_root: str,
    deploy_endpoint: str,
    **values: Any,
) -> Outcome:
    """Note that the training has succeeded, then compare its model with the champion.

    Args:
        page_path: File for the HTML page.
        metrics: Receives the figures.
        checkpoint_directory: Of the run.
        base_output_directory: Of the run.
        run_id: Of the run.
        inputs_sha256: Of the run.
        model_name: Display name in the Model Registry; empty: nothing is compared and registered.
        serving_image: Container image to register the model with.
        region: Region of the Model Registry.
        pipeline_root: Folder or gs:// prefix of the run.
        deploy_endpoint: Display name of the endpoint for a promoted model; empty: it is not deployed.
        **values: Fields of `Goal` and `Criteria`.

    Raises:
        UserError: `result.json` or the metric is missing or not usable, there is no model, or the registry cannot be
            queried.
    """
    goal, criteria = read_goal(values), Criteria(**fields_of(Criteria, values))
    own = evidence.read(checkpoint_directory)
    # Before the metric is judged: with another metric, the run is not trained again.
    outcome.note_completion(checkpoint_directory, run_id=run_id, inputs_sha256=inputs_sha256)
    try:
        value = own.value(goal.metric)
    except UserError as error:
        raise UserError(f"{error}; give another metric, or another run_label to train again") from None
    metrics.update(own.figures)
    refused = None
    found = f"{goal.metric} {value:g}"
    if not goal.is_good_enough(value):
        refused = Result(is_promoted=False, reason=f"{found}: worse than minimum_metric {goal.minimum_metric:g}")
    if not model_name:
        reason = f"{found}; compared with nothing and not registered: model_name is empty"
        write_report(refused or Result(is_promoted=False, reason=reason), page_path, metrics)
        return Outcome("", False, [], "", "", "")
    if not storage.names(storage.join(base_output_directory, "model")):
        raise UserError(
            f"there is no model in {base_output_directory}/model; the training code writes to AIP_MODEL_DIR"
        )
    return conclude(
        page_path=page_path,
        metrics=metrics,
        checkpoint_directory=checkpoint_directory,
        run_id=run_id,
        model_name=model_name,
        serving_image=serving_image,
        registry=Registry(region=region, pipeline_root=pipeline_root),
        deploy_endpoint=deploy_endpoint,
        criteria=criteria,
        refused=refused,
        alone=dataclasses.replace(WITHOUT_CHAMPION, reason=f"{found}; there is no champion: compared with nothing"),
        against=lambda champion: _against(champion, own, goal, criteria),
    )


def _against(champion: Version, own: Evidence, goal: Goal, criteria: Criteria) -> Result:
    """Compare on the same examples if both models' predictions have ids, otherwise by the metric alone."""
    try:
        other = evidence.read_of_model(champion.artifact_uri)
        metric = goal.metric.replace("_", "-")
        is_paired = own.predictions and other.predictions and metric in METRICS and goal.direction == DIRECTIONS[0]
        better, reason = _paired(own, other, metric, criteria) if is_paired else _by_value(own, other, goal)
    except UserError as error:
        better, reason = False, f"no comparison is possible: the champion's {error}{_ADVICE}"
    return Result(is_promoted=better, reason=reason, promotion=labels.BETTER if better else "", champion=champion.name)


def _by_value(own: Evidence, other: Evidence, goal: Goal) -> tuple[bool, str]:
    value, reference = own.value(goal.metric), other.value(goal.metric)
    better = goal.is_better(value, reference)
    word = "better" if better else "equal, so the champion stays" if value == reference else "worse"
    return better, (
        f"{goal.metric} {value:g} against {reference:g} ({goal.direction}): {word}; whether both are of the same"
        " examples, and which of them each model has seen, is unknown"
    )


def _paired(own: Evidence, other: Evidence, metric: str, criteria: Criteria) -> tuple[bool, str]:
    """Compare the answers to the examples that both models have predicted, and neither has seen.

    Raises:
        UserError: There are too few, or they have other labels.
    """
    both = sorted(own.predictions.keys() & other.predictions.keys())
    ids = [each for each in both if each not in own.seen | other.seen]
    if len(ids) < criteria.min_compared_images:
        raise UserError(
            f"predictions and the new model's have {len(ids):,} unseen examples in common, fewer than"
            f" min_compared_images {criteria.min_compared_images:,}"
        )
    if changed := [each for each in ids if own.predictions[each].label != other.predictions[each].label]:
        raise UserError(f"label of example {quote(changed[0])} is another one than the new model's")
    classes = sorted({own.predictions[each].label for each in ids})
    index = {name: number for number, name in enumerate(classes)}
    truth = np.array([index[own.predictions[each].label] for each in ids])
    champion, challenger = (
        np.array([index.get(each.predictions[name].prediction, len(classes)) for name in ids]) for each in (other, own)
    )
    table, scores = scores_of(metric, truth, champion, challenger, len(classes))
    better, reason = decide(table, max_regression=0.0, must_improve=criteria.must_improve, scores=scores)
    reason = reason.replace(" images", " examples")
    if better and not scores.difference:
        better, reason = False, f"{reason}, so the champion stays"
    unknown = "" if own.seen and other.seen else "; which of them the models have seen is unknown"
    return better, f"{reason}; the same examples for both, {len(both) - len(ids):,} left out as seen{unknown}"
