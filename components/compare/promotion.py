"""Decides whether a new model is promoted: finds the champion in the Model Registry and compares the two models."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from components.compare.criteria import Criteria
from components.names import model_name_for
from components.registry import labels
from components.registry.registry import Registry, Version
from localvertex._base.userinput.errors import UserError
from trainer import command_line
from trainer.checkpoints import best
from trainer.command_line import report_errors as report_errors  # a component imports it from here
from trainer.data import dataset as datasets
from trainer.files import outputs
from trainer.learner import libraries
from trainer.results import outcome
from trainer.results.baseline import Verdict
from trainer.results.comparison.decision import Comparison, decide
from trainer.results.comparison.not_comparable import NotComparable
from trainer.results.report import comparison as report


class Outcome(NamedTuple):
    """The outputs of the step."""

    next: str
    """The next step: `export`, or `record` if the version exists; empty unless promoted, or too few images to tell."""
    is_promoted: bool
    deploy_endpoint: str
    """Display name of the endpoint to deploy to; empty for no deployment."""
    registered_version: str
    """Resource name of the version that this very checkpoint is; empty: it is not registered."""
    champion: str
    """Resource name of the version that it replaces if it is promoted; empty: there is none."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """Whether a model is promoted, and why."""

    is_promoted: bool
    reason: str
    promotion: str = ""
    """The label `promotion` of the version; empty if the model is not registered."""
    champion: str = ""
    """Resource name of the version; empty if the model competed with none."""
    comparison: Comparison | None = None
    """None if the models could not be compared."""
    is_final: bool = True
    """Whether the same two models get the same result later."""
    is_forced: bool = False
    """Whether force_promotion overruled the reason."""
    can_be_forced: bool = False
    """Whether force_promotion would overrule it."""

    @property
    def sentence(self) -> str:
        """The reason, as printed and noted."""
        forced, anyway = "by force_promotion; " * self.is_forced, "; force_promotion promotes it anyway"
        return f"{forced}{self.reason}{anyway * self.can_be_forced}"


WITHOUT_CHAMPION = Result(is_promoted=True, reason="there is no champion", promotion=labels.BETTER)

Against = Callable[[Version, Criteria], Result]
"""Compares the model of a run with a champion."""


def compare(
    *,
    dataset: str,
    checkpoint_directory: str,
    source: str,
    model_name: str,
    force_promotion: bool = False,
    **options: Any,
) -> Outcome:
    """Compare the best checkpoint with the champion; see `conclude`.

    Args:
        dataset: The dataset that the run was trained on.
        checkpoint_directory: Checkpoint folder of the run.
        source: Source of the dataset, read again if the champion has another image size.
        model_name: Display name in the Model Registry.
        force_promotion: Whether to promote the model regardless of both comparisons.
        **options: The other arguments of `conclude`.

    Raises:
        UserError: There is no validated checkpoint, it was not evaluated, the run was trained on another dataset, or
            the registry cannot be queried.
    """
    chosen, evaluation = best.find(checkpoint_directory, datasets.load(dataset)), _evaluation(checkpoint_directory)
    is_refused = evaluation["verdict"] != Verdict.BETTER and not force_promotion
    return conclude(
        checkpoint_directory=checkpoint_directory,
        run_id=chosen.checkpoint.run_id,
        model_name=model_name,
        refused=_not_better(evaluation) if is_refused else None,
        alone=_with_evaluation(evaluation, WITHOUT_CHAMPION),
        against=functools.partial(
            against,
            dataset=dataset,
            checkpoint_directory=checkpoint_directory,
            source=source,
            model_name=model_name,
        ),
        force_promotion=force_promotion,
        **options,
    )


def conclude(
    *,
    comparison: str,
    metrics: MutableMapping[str, Any],
    checkpoint_directory: str,
    run_id: str,
    model_name: str,
    serving_image: str,
    region: str,
    pipeline_root: str,
    refused: Result | None,
    alone: Result,
    against: Against,
    deploy_endpoint: str = "",
    **given: Any,
) -> Outcome:
    """Find the champion, decide, write the page, and note the outcome next to the checkpoints.

    Args:
        comparison: File for the HTML page.
        metrics: Receives the figures.
        checkpoint_directory: Checkpoint folder of the run.
        run_id: Id of the run.
        model_name: Display name in the Model Registry.
        serving_image: Container image to register the model with; another image makes a new version.
        region: Region of the Model Registry.
        pipeline_root: Folder or gs:// prefix of the run.
        deploy_endpoint: Display name of the endpoint for a promoted model; empty: it is not deployed.
        refused: The result of a model that is not compared; None: it is.
        alone: The result without a champion.
        against: Compares the model with a champion.
        **given: Fields of `Criteria`, which are noted.

    Raises:
        UserError: A criterion is wrong, or the registry cannot be queried.
    """
    criteria, registry = Criteria(**given), Registry(region=region, pipeline_root=pipeline_root)
    parent = registry.find(model_name)
    digest = outcome.best_digest(checkpoint_directory)
    own = registry.version_of_run(parent, run_id, digest) if parent else None
    champion = registry.champion(parent) if parent else None
    if own and champion and own.name == champion.name:
        result = Result(
            is_promoted=True,
            reason=f"this checkpoint is the champion already: {own.name}",
            promotion=own.labels.get(labels.PROMOTION, labels.BETTER),
        )
    elif refused:
        result = refused
    elif champion is None:
        result = alone
    else:
        result = compete(own, champion, criteria=criteria, against=against)
    write_report(result, comparison, metrics)
    note(checkpoint_directory, result, criteria)
    if deploy_endpoint and result.promotion == labels.UNDECIDED and not result.is_promoted:
        print(f"not deployed to {deploy_endpoint}: the model is not promoted")
    registered = own.name if own and own.container_image == serving_image else ""
    is_version = result.is_promoted or result.promotion == labels.UNDECIDED
    return Outcome(
        next=("record" if registered else "export") if is_version else "",
        is_promoted=result.is_promoted,
        deploy_endpoint=deploy_endpoint if result.is_promoted else "",
        registered_version=registered,
        champion=champion.name if champion else "",
    )


def compete(own: Version | None, champion: Version, *, criteria: Criteria, against: Against) -> Result:
    """Compare a model with the champion; an older version than the champion has to be better than it.

    Otherwise the versions of two runs, each as good as the other, would replace each other whenever a step is repeated.

    Args:
        own: The version that the model is already; None: it is not registered.
        champion: Another version.
        criteria: Criteria of the comparison.
        against: Compares the model with a champion.
    """
    if own is None or int(own.number) > int(champion.number):
        return against(champion, criteria)
    result = against(champion, dataclasses.replace(criteria, force_promotion=False, max_regression=0.0))
    if result.is_promoted and not (result.comparison and not result.comparison.scores.difference):
        return result
    reason = (
        f"{result.reason}; this checkpoint is {own.name}, and the newer version"
        f" {champion.number} is the champion; to promote it, give it the alias champion"
    )
    return dataclasses.replace(
        result, is_promoted=False, promotion="", reason=reason, is_forced=False, can_be_forced=False
    )


def note(checkpoint_directory: str, result: Result, criteria: Criteria) -> None:
    """Note a result next to the checkpoints."""
    outcome.note_comparison(
        checkpoint_directory,
        # A refusal is the champion's as long as it is one; a missing file may come back.
        champion=result.champion if result.is_final else "",
        is_promoted=result.is_promoted,
        reason=result.sentence,
        criteria=dataclasses.asdict(criteria),
        promotion=result.promotion,
    )


def _evaluation(checkpoint_directory: str) -> Mapping[str, Any]:
    """Return the note of `evaluate`.

    Raises:
        UserError: There is none of the best checkpoint.
    """
    if found := outcome.notes(checkpoint_directory).evaluation:
        return found
    raise UserError(
        f"{checkpoint_directory!r} has no intact evaluation.json of its best checkpoint; run the pipeline again to"
        " evaluate it"
    )


def _not_better(evaluation: Mapping[str, Any]) -> Result:
    """Return the result of a model that may be no better than a constant answer."""
    is_undecided = evaluation["verdict"] == Verdict.UNDECIDED
    registered = "; registered without the alias champion" if is_undecided else ""
    return Result(
        is_promoted=False,
        reason=f"{evaluation['reason']}{registered}",
        can_be_forced=True,
        promotion=labels.UNDECIDED if is_undecided else "",
    )


def _with_evaluation(evaluation: Mapping[str, Any], result: Result) -> Result:
    """Return the result with the evaluation's reason, which force_promotion overrules if it is unfavourable."""
    reason = f"{evaluation['reason']}; {result.reason}"
    if evaluation["verdict"] == Verdict.BETTER or not result.is_promoted:
        return result if result.champion else dataclasses.replace(result, reason=reason)
    return dataclasses.replace(result, promotion=labels.FORCED, is_forced=True, reason=reason)


def against(
    champion: Version,
    criteria: Criteria,
    *,
    dataset: str,
    checkpoint_directory: str,
    source: str,
    model_name: str,
) -> Result:
    """Compare the best checkpoint with a champion; where no fair comparison is possible, only a user can decide."""
    data = datasets.load(dataset)
    command_line.set_environment()
    libraries.load()
    from trainer.results.comparison import comparison

    found, is_final = None, True
    try:
        found = comparison.compare(
            data=data,
            chosen=best.find(checkpoint_directory, data),
            checkpoint_directory=checkpoint_directory,
            champion_folder=champion.artifact_uri,
            champion_checkpoints=_checkpoints_of(champion, checkpoint_directory),
            source=source,
            min_compared_images=criteria.min_compared_images,
        )
        is_promoted, reason = decide(
            found.table,
            max_regression=criteria.max_regression,
            must_improve=criteria.must_improve,
            scores=found.scores,
        )
        reason += f"; {found.fall}" if found.fall else ""
    except NotComparable as error:
        is_promoted, reason, is_final = False, f"no comparison is possible: {error}", error.is_final
        if error.has_other_classes and not criteria.force_promotion:
            own_name = model_name_for(source)
            another = f"{model_name}-2" if model_name == own_name else own_name
            reason += f", or start another model: --parameter model_name={another}"
    is_forced = criteria.force_promotion and not is_promoted
    result = Result(
        is_promoted=is_promoted or is_forced,
        reason=reason,
        promotion=labels.BETTER if is_promoted else labels.FORCED if is_forced else "",
        is_forced=is_forced,
        can_be_forced=not (is_promoted or is_forced),
        champion=champion.name,
        comparison=found,
        is_final=is_final,
    )
    return _with_evaluation(_evaluation(checkpoint_directory), result)


def _checkpoints_of(champion: Version, checkpoint_directory: str) -> str:
    """Return the checkpoint folder of the champion's run, beside this one's; empty if its run is not known."""
    run_id = champion.labels.get(labels.RUN_ID, "")
    return run_id and f"{checkpoint_directory.rstrip('/').rpartition('/')[0]}/{run_id}"


def write_report(result: Result, page_path: str, metrics: MutableMapping[str, Any]) -> None:
    """Write the page, add the figures, and print the reason."""
    metrics.update({"is_promoted": float(result.is_promoted), "reason": result.sentence})
    if result.comparison:
        metrics.update(report.metrics(result.comparison))
    page = report.render(
        champion=result.champion,
        is_promoted=result.is_promoted,
        reason=result.sentence,
        comparison=result.comparison,
    )
    outputs.write(page_path, page)
    print(summary(result))


def summary(result: Result) -> str:
    """Return a result in one line."""
    champion = f" against {result.champion}" if result.champion else ""
    return f"{'promoted' if result.is_promoted else 'not promoted'}{champion}: {result.sentence}"
