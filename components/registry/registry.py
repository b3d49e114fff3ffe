"""Models and versions in the Model Registry: Vertex AI's, or in a local run the one of the work folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from components import vertex_clients
from components.registry.labelled import Labelled
from components.registry.labels import CHAMPION, CHECKPOINT, PROJECT_LABEL, RUN_ID, VERSION_KEYS, label_value
from components.vertex_clients import NotFoundError, call
from localvertex._base.userinput.errors import UserError

_DEFAULT = "default"


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version of a registered model."""

    model: str
    """Resource name of the model, `projects/P/locations/R/models/ID`."""
    number: str
    aliases: tuple[str, ...]
    labels: Mapping[str, str]
    artifact_uri: str
    """Folder of its files; empty if it has none."""
    container_image: str
    """Image of its serving container; empty if it has none."""

    @property
    def name(self) -> str:
        """Return the resource name of the version."""
        return f"{self.model}@{self.number}"


class Registry(Labelled):
    """The registry that a step reaches."""

    def find(self, display_name: str) -> str:
        """Return the resource name of the pipeline's model with this display name, or an empty string.

        Raises:
            UserError: There are several.
        """
        named = self.named(self._client.list_models, display_name, what="the registered models cannot be listed")
        return self.own(named, display_name, kind="models")

    def versions(self, model: str) -> list[Version]:
        """Return all versions of a model, the oldest first.

        Raises:
            NotFoundError: There is no such model.
        """
        what = f"the versions of {model} cannot be listed"
        found = call(self._client.list_model_versions, {"name": model, "page_size": 100}, what=what)
        return sorted(map(_version, found), key=lambda each: int(each.number))

    def champion(self, model: str) -> Version | None:
        """Return the version with the alias champion, or None.

        The alias default alone makes no champion: the service gives it to the first version, promoted or not.

        Raises:
            UserError: No version has one of these aliases, although the service always has a default version.
        """
        versions = self.versions(model)
        if not any({CHAMPION, _DEFAULT} & set(each.aliases) for each in versions):
            raise UserError(
                f"no version of {model} has the alias {CHAMPION} or {_DEFAULT}, so its record is damaged; repair it, or"
                " give another model_name"
            )
        return next((each for each in versions if CHAMPION in each.aliases), None)

    def version_of_run(self, model: str, run_id: str, checkpoint_sha256: str) -> Version | None:
        """Return the newest version that a run registered for a checkpoint, or None."""
        wanted = {RUN_ID: run_id, CHECKPOINT: label_value(checkpoint_sha256)}
        found = [each for each in self.versions(model) if wanted.items() <= each.labels.items()]
        return found[-1] if found else None

    def merge_aliases(self, version: str, aliases: Sequence[str]) -> None:
        """Move aliases to a version; a leading `-` removes one from it."""
        request = {"name": version, "version_aliases": list(aliases)}
        call(self._client.merge_version_aliases, request, what=f"the aliases of {version} cannot be set")

    def describe(self, version: str, text: str) -> None:
        """Set the description of a version."""
        self._update({"name": version, "version_description": text}, "version_description")

    def label_model(self, model: str, labels: Mapping[str, str]) -> None:
        """Add labels to a model, or replace their values.

        The service returns a model's labels together with its default version's. Only the former are kept: a
        version without a run would otherwise get the default version's label.
        """
        kept = {key: value for key, value in self._labels(model).items() if key not in VERSION_KEYS}
        self._update({"name": model, "labels": kept | dict(labels)}, "labels")

    def label_version(self, version: str, labels: Mapping[str, str]) -> None:
        """Add labels to a version, or replace their values, even if only its model has them."""
        self._update({"name": version, "labels": self._labels(version) | dict(labels)}, "labels")

    def evaluations(self, version: str) -> list[str]:
        """Return the resource names of the evaluations of a version."""
        what = f"the evaluations of {version} cannot be listed"
        return [each.name for each in call(self._client.list_model_evaluations, {"parent": version}, what=what)]

    def import_evaluation(
        self, version: str, metrics: Mapping[str, Any], *, display_name: str, schema_uri: str
    ) -> None:
        """Add an evaluation to a version.

        Args:
            version: Resource name of the version.
            metrics: Its metrics, as the schema demands.
            display_name: Name in the console.
            schema_uri: Address (gs://) of the schema of the metrics.
        """
        evaluation = {"display_name": display_name, "metrics_schema_uri": schema_uri, "metrics": dict(metrics)}
        what = f"the evaluation of {version} cannot be stored"
        request = {"parent": version, "model_evaluation": evaluation}
        call(self._client.import_model_evaluation, request, what=what, is_repeatable=False)

    def get(self, name: str) -> Version:
        """Return a version by its resource name, or the default version by its model's name.

        Raises:
            NotFoundError: It does not exist.
        """
        try:
            return _version(call(self._client.get_model, {"name": name}, what=f"the model {name} cannot be read"))
        except NotFoundError as error:
            raise NotFoundError(f"{error}; a new run of the pipeline registers it again") from None

    def version(self, display_name: str, version: str) -> Version:
        """Return a version of the pipeline's model; it has files.

        Args:
            display_name: Display name of the model.
            version: Number or alias.

        Raises:
            UserError: There is no such model or version, or it has no files.
        """
        model = self.find(display_name)
        if not model:
            label = "=".join(PROJECT_LABEL)
            raise UserError(
                f"no registered model in {self.region} has the name {display_name!r} and the label {label}; give the"
                " name of one that a pipeline of this project has registered"
            )
        try:
            found = self.get(f"{model}@{version}")
        except NotFoundError:
            known = [name for each in self.versions(model) for name in (each.number, *each.aliases)]
            raise UserError(f"{model} has no version {version!r}; it has {', '.join(known)}") from None
        if not found.artifact_uri:
            raise UserError(f"{found.name} has no files; name another version")
        return found

    def _labels(self, name: str) -> dict[str, str]:
        return dict(call(self._client.get_model, {"name": name}, what=f"{name} cannot be read").labels)

    def _update(self, model: dict[str, Any], field: str) -> None:
        request = {"model": model, "update_mask": {"paths": [field]}}
        call(self._client.update_model, request, what=f"{model['name']} cannot be changed")

    @cached_property
    def _client(self) -> Any:
        return vertex_clients.models(self.region, self.root)


def _version(model: Any) -> Version:
    return Version(
        model=model.name.partition("@")[0],
        number=model.version_id,
        aliases=tuple(model.version_aliases),
        labels=dict(model.labels),
        artifact_uri=model.artifact_uri,
        container_image=model.container_spec.image_uri,
    )
