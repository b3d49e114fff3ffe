"""How a run ended, in one sentence and in fields: the models that it made, or why it made none.

A step explains the outcome by the text `reason` in the metadata of an output artifact, and how to use a model by the
text `usage`, in which {python} and {path} are replaced. Formats: docs/localvertex.md.
"""

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.usage import fill
from localvertex._base.userinput.cli import one_line
from localvertex._base.userinput.spelling import on_one_line
from localvertex.store import runs
from localvertex.store.models import deployed
from localvertex.store.models.reading import ALIASED_BY, DEFAULT, MODEL, UPLOADED_BY, ModelRecords, object_in
from localvertex.store.task import State

FIELD = "outcome"

MADE, PROMOTED, NOT_MADE, NOTHING_NEW = "made", "promoted", "not_made", "nothing_new"
"""Kinds of outcomes."""

_NOTHING_NEW, _IDENTITY = "has_nothing_new", "run_id"
"""Outputs of a step that finds out that the same run already ran, and the identity by which it does."""

_REASON, _USAGE = "reason", "usage"


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model that a run made: a version of the registry, or the output of a step that registered none."""

    name: str = ""
    """Display name in the registry; empty without a version."""
    model_id: str = ""
    version: str = ""
    aliases: tuple[str, ...] = ()
    """Aliases without `default`, which each model has."""
    endpoints: tuple[str, ...] = ()
    """Resource names of the endpoints that it is deployed to."""
    path: str = ""
    """Its files, or their address."""

    def __str__(self) -> str:
        text = f"version {self.version} of {self.name}" if self.version else f"a model in {self.path}"
        text += f", now {' and '.join(self.aliases)}" if self.aliases else ""
        return text + "".join(f", deployed to {each.rpartition('/')[2]}" for each in self.endpoints)


def of(content: JsonObject) -> JsonObject:
    """Return the outcome of a run that has ended.

    Args:
        content: The record; it has no outcome yet, or never got one because its process was killed.
    """
    found: JsonObject = content.get(FIELD) or _find(content)
    return found


def _find(content: JsonObject) -> JsonObject:
    kind, source, earlier, sentence = NOT_MADE, content, "", ""
    if step := next(filter(has_nothing_new, content["tasks"]), None):
        identity = str(step["outputs"]["parameters"].get(_IDENTITY, ""))
        kind, source = NOTHING_NEW, _same_run(content, step["path"], identity)
        earlier = source.get("run_id", "")
        sentence = f"Nothing new: run {identity} is already finished; {content['work_dir']} has no record of it"
    made, failure, reason = _versions(source, UPLOADED_BY), _failure(content), _noted(source, _REASON)
    promoted = [each for each in _versions(source, ALIASED_BY) if each.aliases]
    models = made or promoted or _written(source)
    because = f", because {reason}" if reason else ""
    if models:
        found = str(models[0]) + f" and {len(models) - 1} more" * (len(models) > 1)
        is_unnamed = models[0].version and not models[0].aliases
        if step:
            sentence = f"Nothing new: same as run {earlier}; its model is {found.removeprefix('a model ')}"
        else:
            kind, verb = (PROMOTED, "Promoted") if promoted and not made else (MADE, "Made")
            sentence = f"{verb} {found}" + (f", without an alias{because}" if because and is_unnamed else "")
    elif earlier:
        was_made = of(source)["kind"] == MADE
        text = "its model was removed since then" if was_made else f"it made no model{because}"
        sentence = f"Nothing new: same as run {earlier}; {text}"
    elif not step:
        sentence = f"No model was made{f', because {failure}' if failure else because}"
    if failure and (models or step):
        sentence += f", but {failure}"
    usage = fill(_noted(source, _USAGE), models[0].path) if models and models[0].path else ""
    return {
        "kind": kind,
        "sentence": f"{sentence}. {usage}" if usage else sentence,
        "reason": content.get("error") or failure or reason,
        "usage": usage,
        "earlier_run": earlier,
        "models": [asdict(each) for each in models],
    }


def has_nothing_new(task: JsonObject) -> bool:
    """Return whether a task of a record found that the same run already ran."""
    return task["outputs"]["parameters"].get(_NOTHING_NEW) is True


def _same_run(content: JsonObject, path: str, identity: str) -> JsonObject:
    """Return the record of the earlier run with this identity; empty when it is no longer in the work folder."""
    same = [
        each.content
        for each in runs.find_all(Path(content["work_dir"]))
        if not each.problem
        and each.content["pipeline_name"] == content["pipeline_name"]
        and each.content["create_time"] < content["create_time"]
        and any(_has_results(task, path, identity) for task in each.content["tasks"])
    ]

    def rank(earlier: JsonObject) -> tuple[Any, ...]:
        # A failed run has fewer metrics; one with other parameters may have had another outcome.
        is_same = earlier["state"] == State.SUCCEEDED and earlier["parameters"] == content["parameters"]
        return is_same, bool(earlier["models"]), len(earlier["metrics"]), earlier["create_time"]

    # The work folder may have been moved since.
    return max(same, key=rank) | {"work_dir": content["work_dir"]} if same else {}


def _has_results(task: JsonObject, path: str, identity: str) -> bool:
    values = task["outputs"]["parameters"]
    return task["path"] == path and values.get(_IDENTITY) == identity and values.get(_NOTHING_NEW) is False


def _failure(content: JsonObject) -> str:
    """Return how a run failed or was stopped; empty if it has succeeded."""
    if content["state"] == State.SUCCEEDED:
        return ""
    failed = next((each for each in content["tasks"] if each["path"] == content.get("failed_task")), None)
    if failed and content["state"] == State.FAILED:
        return f"{failed['title']} failed"
    return one_line(on_one_line(content.get("error") or "the run was stopped"))


def _versions(content: JsonObject, by: str) -> list[Model]:
    """Return the versions that have a run in a field: the one in use comes first, then the newest."""
    found = []
    # What begins with a dot is still being written, and may have another name before it is looked at.
    for entry in (Path(content["work_dir"]) / "models").glob(f"[!.]*/[!.]*/{MODEL}") if content else ():
        # A damaged entry belongs to no run.
        with suppress(OSError, ValueError, LookupError):
            if str(object_in(entry).get(by)).startswith(f"{content.get('uuid')}/"):
                found.append(_version(content, entry.parent))
    return sorted(found, key=lambda each: (bool(each.aliases), each.model_id, int(each.version)), reverse=True)


def _written(content: JsonObject) -> list[Model]:
    """Return the models that the steps of a run wrote; an artifact without a file is not a model."""
    addresses = [each["uri"] for each in content.get("models", ()) if not each["resource_name"]]
    return [Model(path=each) for each in addresses if "://" in each or Path(each).exists()]


def _version(content: JsonObject, folder: Path) -> Model:
    records, number = ModelRecords(folder.parent), folder.name
    fields = records.content(number)
    return Model(
        name=str(fields["display_name"]),
        model_id=folder.parent.name,
        version=number,
        aliases=tuple(each for each in records.aliases_of(number) if each != DEFAULT),
        endpoints=tuple(deployed.endpoints_of(Path(content["work_dir"]), folder.parent.name, number)),
        path=str(fields.get("artifact_uri", "")),
    )


def _noted(content: JsonObject, name: str) -> str:
    """Return the text that the step which ended last has under this name in the metadata of an output."""
    found = [
        (task["end_time"] or "", one_line(on_one_line(text)))
        for task in content.get("tasks", ())
        if task["kind"] == "step" and task["state"] != State.GIVEN
        for artifacts in task["outputs"]["artifacts"].values()
        for artifact in artifacts
        if isinstance(text := (artifact.get("metadata") or {}).get(name), str) and text.strip()
    ]
    return max(found, default=("", ""))[1]
