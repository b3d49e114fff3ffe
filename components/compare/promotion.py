"""Decides whether a new model is promoted: it finds the champion in the Model Registry and compares both."""

import dataclasses
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from components.compare.criteria import Criteria
from components.names import model_name_for
from components.registry import labels
from components.registry.registry import Registry, Version
from exact_resume.checkpoints import outcome
from localvertex_base.userinput.errors import UserError
from trainer import command_line
from trainer.checkpoints import best
from trainer.checkpoints.best import BestCheckpoint
from trainer.command_line import report_errors as report_errors  # a component imports it from here
from trainer.data import dataset
from trainer.data.dataset import Dataset
from trainer.files import outputs
from trainer.learner import libraries
from trainer.results.baseline import Verdict
from trainer.results.comparison.decision import Comparison, decide
from trainer.results.comparison.not_comparable import NotComparable
from trainer.results.report import comparison as report

_FORCED = "by force_promotion; "


class Outcome(NamedTuple):
    """The outputs of the step."""

    next: str
    """The next step: `export`, or `record` if the version exists; empty unless promoted, or too few images to tell."""
    is_promoted: bool
    aliases: list[str]
    """Aliases of the new version; empty if the model is not promoted."""
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


WITHOUT_CHAMPION = Result(is_promoted=True, reason="there is no champion", promotion=labels.BETTER)


def compare(
    *,
    dataset_directory: str,
    page_path: str,
    metrics: MutableMapping[str, Any],
    checkpoint_directory: str,
    source: str,
    model_name: str,
    serving_image: str,
    region: str,
    pipeline_root: str,
    deploy_endpoint: str = "",
    **criteria: Any,
) -> Outcome:
    """Compare the best checkpoint with the champion, write a page, and note the outcome next to the checkpoints.

    Args:
        dataset_directory: The dataset that the run was trained on.
        page_path: File for the HTML page.
        metrics: Receives the figures.
        checkpoint_directory: Of the run.
        source: Source of the dataset, read again if the champion has another image size.
        model_name: Display name in the Model Registry.
        serving_image: Container image to register the model with; another image makes a new version.
        region: Region of the Model Registry.
        pipeline_root: Folder or gs:// prefix of the run.
        deploy_endpoint: Display name of the endpoint for a promoted model; empty: it is not deployed.
        **criteria: Fields of `Criteria`.

    Raises:
        UserError: There is no validated checkpoint, it was not evaluated, the run was trained on another dataset, or
            the registry cannot be queried.
    """
    wanted, data = Criteria(**criteria), dataset.load(dataset_directory)
    chosen = best.find(checkpoint_directory, data)
    evaluation = outcome.notes(checkpoint_directory).evaluation
    if not evaluation:
        raise UserError(
            f"{checkpoint_directory!r} has no intact evaluation.json of its best checkpoint; run the pipeline again"
            " to evaluate it"
        )
    is_refused = evaluation["verdict"] != Verdict.BETTER and not wanted.force_promotion

    def against(champion: Version) -> Result:
        return _with_evaluation(
            evaluation,
            _against(
                champion, data, chosen, checkpoint_directory, source=source, model_name=model_name, criteria=wanted
            ),
        )

    return conclude(
        page_path=page_path,
        metrics=metrics,
        checkpoint_directory=checkpoint_directory,
        run_id=chosen.checkpoint.run_id,
        model_name=model_name,
        serving_image=serving_image,
        registry=Registry(region=region, pipeline_root=pipeline_root),
        deploy_endpoint=deploy_endpoint,
        criteria=wanted,
        refused=_not_better(evaluation) if is_refused else None,
        alone=_with_evaluation(evaluation, WITHOUT_CHAMPION),
        against=against,
    )


def conclude(
    *,
    page_path: str,
    metrics: MutableMapping[str, Any],
    checkpoint_directory: str,
    run_id: str,
    model_name: str,
    serving_image: str,
    registry: Registry,
    deploy_endpoint: str,
    criteria: Criteria,
    refused: Result | None,
    alone: Result,
    against: Callable[[Version], Result],
) -> Outcome:
    """Find the champion, decide, write the page, and note the outcome next to the checkpoints.

    Args:
        page_path: File for the HTML page.
        metrics: Receives the figures.
        checkpoint_directory: Of the run.
        run_id: Of the run.
        model_name: Display name in the Model Registry.
        serving_image: Container image to register the model with; another image makes a new version.
        registry: The Model Registry.
        deploy_endpoint: Display name of the endpoint for a promoted model; empty: it is not deployed.
        criteria: What was asked for, noted.
        refused: The result of a model that is not compared; None: it is.
        alone: The result without a champion.
        against: Compares the model with a champion.

    Raises:
        UserError: The registry cannot be queried.
    """
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
    elif own and int(own.number) < int(champion.number):
        result = Result(
            is_promoted=False,
            champion=champion.name,
            reason=(
                f"this checkpoint is {own.name}, and the newer version {champion.number} is the champion; to promote"
                " it, give it the alias champion"
            ),
        )
    else:
        result = against(champion)
    write_report(result, page_path, metrics)
    outcome.note_comparison(
        checkpoint_directory,
        # A refusal is the champion's as long as it is one; a missing file may come back.
        champion=result.champion if result.is_final else "",
        is_promoted=result.is_promoted,
        reason=result.reason,
        criteria=dataclasses.asdict(criteria),
        promotion=result.promotion,
    )
    if deploy_endpoint and result.promotion == labels.UNDECIDED and not result.is_promoted:
        print(f"not deployed to {deploy_endpoint}: the model is not promoted")
    registered = own.name if own and own.container_image == serving_image else ""
    is_version = result.is_promoted or result.promotion == labels.UNDECIDED
    return Outcome(
        next=("record" if registered else "export") if is_version else "",
        is_promoted=result.is_promoted,
        aliases=list(labels.ALIASES) if result.is_promoted else [],
        deploy_endpoint=deploy_endpoint if result.is_promoted else "",
        registered_version=registered,
        champion=champion.name if champion else "",
    )


def _not_better(evaluation: Mapping[str, Any]) -> Result:
    """Return the result of a model that may be no better than a constant answer."""
    is_undecided = evaluation["verdict"] == Verdict.UNDECIDED
    registered = "registered without the alias champion; " if is_undecided else ""
    return Result(
        is_promoted=False,
        reason=f"{evaluation['reason']}; {registered}force_promotion promotes it anyway",
        promotion=labels.UNDECIDED if is_undecided else "",
    )


def _with_evaluation(evaluation: Mapping[str, Any], result: Result) -> Result:
    """Return the result with the evaluation's reason, which force_promotion overrules if it is unfavourable."""
    if evaluation["verdict"] == Verdict.BETTER:
        alone = dataclasses.replace(result, reason=f"{evaluation['reason']}; {result.reason}")
        return result if result.champion else alone
    reason = f"{_FORCED}{evaluation['reason']}; {result.reason.removeprefix(_FORCED)}"
    return dataclasses.replace(result, promotion=labels.FORCED, reason=reason)


def _against(
    champion: Version,
    data: Dataset,
    chosen: BestCheckpoint,
    directory: str,
    *,
    source: str,
    model_name: str,
    criteria: Criteria,
) -> Result:
    """Return the result against a champion; where no fair comparison is possible, only a user can decide."""
    command_line.set_environment()
    libraries.load()
    from trainer.results.comparison import comparison

    found, is_final = None, True
    try:
        found = comparison.compare(
            data=data,
            chosen=chosen,
            checkpoint_directory=directory,
            champion_folder=champion.artifact_uri,
            source=source,
            min_compared_images=criteria.min_compared_images,
        )
        is_promoted, reason = decide(
            found.table,
            max_regression=criteria.max_regression,
            must_improve=criteria.must_improve,
            scores=found.scores,
        )
    except NotComparable as error:
        is_promoted, reason, is_final = False, f"no comparison is possible: {error}", error.is_final
        if error.has_other_classes and not criteria.force_promotion:
            own_name = model_name_for(source)
            another = f"{model_name}-2" if model_name == own_name else own_name
            reason += f", or start another model: --parameter model_name={another}"
    promotion = labels.BETTER
    if not is_promoted:
        is_promoted, promotion = criteria.force_promotion, labels.FORCED if criteria.force_promotion else ""
        reason = f"{_FORCED}{reason}" if is_promoted else f"{reason}; force_promotion promotes it anyway"
    return Result(
        is_promoted=is_promoted,
        reason=reason,
        promotion=promotion,
        champion=champion.name,
        comparison=found,
        is_final=is_final,
    )


def write_report(result: Result, page_path: str, metrics: MutableMapping[str, Any]) -> None:
    """Write the page, add the figures, and print the reason."""
    metrics.update({"is_promoted": float(result.is_promoted), "reason": result.reason})
    if result.comparison:
        metrics.update(report.metrics(result.comparison))
    page = report.render(
        champion=result.champion,
        is_promoted=result.is_promoted,
        reason=result.reason,
        comparison=result.comparison,
    )
    outputs.write(page_path, page)
    against = f" against {result.champion}" if result.champion else ""
    print(f"{'promoted' if result.is_promoted else 'not promoted'}{against}: {result.reason}")
