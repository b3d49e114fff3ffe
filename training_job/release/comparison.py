"""The step `compare`: finds the champion in the Model Registry, and compares a new model with it."""

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from trainer import command_line
from trainer.checkpoints import best, outcome
from trainer.checkpoints.best import BestCheckpoint
from trainer.command_line import reported as reported  # a component imports `reported` from here
from trainer.data import dataset
from trainer.data.dataset import Dataset
from trainer.files import storage
from trainer.learner import libraries
from trainer.results.comparison.decision import Comparison, decide
from trainer.results.comparison.not_comparable import NotComparable
from trainer.results.report import comparison as report
from training_job.release.criteria import Criteria
from training_job.release.registry import Registry, Version


class Outcome(NamedTuple):
    """The outputs of the step."""

    is_promoted: bool
    parent_model: str
    """Resource name of the model that the new one becomes a version of; empty: it becomes the first."""
    registered_version: str
    """Resource name of the version that this very checkpoint is; empty: it is not registered."""
    champion: str
    """Resource name of the version that it replaces if it is promoted; empty: there is none."""


@dataclass(frozen=True, kw_only=True)
class _Result:
    is_promoted: bool
    reason: str
    champion: str = ""
    """Resource name of the version; empty if the model competed with none."""
    comparison: Comparison | None = None
    """None if the models could not be compared."""
    is_final: bool = True
    """Whether the same two models get the same result later."""


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
        serving_image: Container image that the model is to be registered with; with another one it is a new version.
        region: Region of the Model Registry.
        pipeline_root: Folder or gs:// prefix of the run.
        **criteria: Fields of `Criteria`.

    Raises:
        UserError: There is no validated checkpoint, the run was trained on another dataset, or the registry cannot be
            asked.
    """
    wanted, data = Criteria(**criteria), dataset.load(dataset_directory)
    chosen = best.find(checkpoint_directory, data)
    registry = Registry(region=region, pipeline_root=pipeline_root)
    parent = registry.find(model_name)
    own = _version_of(registry, parent, chosen, checkpoint_directory) if parent else None
    champion = registry.champion(parent) if parent else None
    if champion is None:
        result = _Result(is_promoted=True, reason="there is no champion; the minimum accuracy alone decides")
    elif own and own.name == champion.name:
        result = _Result(is_promoted=True, reason=f"this checkpoint is the champion already: {own.name}")
    elif own and int(own.number) < int(champion.number):
        result = _Result(
            is_promoted=False,
            champion=champion.name,
            reason=f"this checkpoint is {own.name}, which version {champion.number} has replaced; to bring it back,"
            " give it the alias champion",
        )
    else:
        result = _against(champion, data, chosen, checkpoint_directory, source=source, criteria=wanted)
    _report(result, page_path, metrics)
    outcome.note_comparison(
        checkpoint_directory,
        # A refusal is the champion's as long as it is one; a missing file may come back.
        champion=result.champion if result.is_final else "",
        is_promoted=result.is_promoted,
        reason=result.reason,
        criteria=wanted.noted(),
    )
    return Outcome(
        result.is_promoted,
        parent,
        own.name if own and own.container_image == serving_image else "",
        champion.name if champion else "",
    )


def _version_of(registry: Registry, model: str, chosen: BestCheckpoint, directory: str) -> Version | None:
    """Return the version that an earlier attempt has registered of this checkpoint."""
    return registry.version_of_run(model, chosen.checkpoint.run_id, outcome.best_digest(directory))


def _against(
    champion: Version, data: Dataset, chosen: BestCheckpoint, directory: str, *, source: str, criteria: Criteria
) -> _Result:
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
    if not is_promoted:
        is_promoted = criteria.force_promotion
        reason = f"by force_promotion; {reason}" if is_promoted else f"{reason}; force_promotion registers it anyway"
    return _Result(is_promoted=is_promoted, reason=reason, champion=champion.name, comparison=found, is_final=is_final)


def _report(result: _Result, page_path: str, metrics: MutableMapping[str, Any]) -> None:
    metrics.update({"is_promoted": float(result.is_promoted), "reason": result.reason})
    if result.comparison:
        metrics.update(report.metrics(result.comparison))
    page = report.render(
        champion=result.champion,
        is_promoted=result.is_promoted,
        reason=result.reason,
        comparison=result.comparison,
    )
    storage.write_output(page_path, page)
    against = f" against {result.champion}" if result.champion else ""
    print(f"{'promoted' if result.is_promoted else 'not promoted'}{against}: {result.reason}")
