"""The checks of a run before it is started: the file, the form, and the machines that it requests."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from accelerators.pipeline.check import examine_pipeline
from localvertex.api.pipeline_jobs.pipeline_jobs import PipelineJobs
from localvertex.api.rest.call import Location
from localvertex.api.rest.errors import ApiError, Status
from localvertex.api.rest.store import Store
from localvertex.console.creating import artifacts, form, request
from localvertex.console.creating.equivalents import Equivalents
from localvertex.console.creating.source import Source
from localvertex.store.executor_files import artifact_parent
from localvertex_base.compiled import platforms
from localvertex_base.userinput.errors import UserError

_NO_FIELD = (
    "Vertex AI's request has no field for the second document of this file, so its settings have no effect: {names}; "
    "the command applies those that it can"
)


def wrong(details: form.Details) -> ApiError:
    """Build the error for fields of a form."""
    return ApiError(
        Status.INVALID_ARGUMENT, "; ".join(f"{each['field']}: {each['message']}" for each in details), details
    )


@dataclass(frozen=True, kw_only=True)
class _Filled:
    """A form that was read."""

    values: dict[str, Any]
    inputs: artifacts.Inputs
    settings: request.Settings


@dataclass(frozen=True, kw_only=True)
class Checks:
    """The checks of one pipeline in one location."""

    source: Source
    location: Location
    pipeline_jobs: PipelineJobs
    store: Store

    def overview(self) -> dict[str, Any]:
        """Return what the file is, its form, and what is known before the form is filled."""
        source, pipeline = self.source, self.source.pipeline
        job = request.pipeline_job(source, pipeline.job.parameters, {}, request.Settings())
        refusals, _ = self._refusals(job, only_pipeline=True)
        return {
            "path": source.path,
            "content": source.content,
            "pipeline": pipeline.name,
            "description": pipeline.description,
            "steps": self._steps(),
            "region": self.location.region,
            "parameters": form.parameters(source),
            "artifacts": artifacts.fields(source),
            "settings": request.settings_of(source),
            "warnings": [*source.warnings],
            "refusals": refusals,
            "notes": self._platform_notes(),
            "machine_check": self._machine_check(job),
        }

    def of_form(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Check a whole form: return what is wrong with it as `errors`, or else what depends on the values.

        Raises:
            ApiError: With `is_start`, if fields are wrong; the details name each.
        """
        filled, details = self._read_form(body)
        if details:
            if body.get("is_start"):
                raise wrong(details)
            # Errors in other fields are no reason to show the machines of another region.
            return {"errors": details, "machine_check": self._machine_check(self._job(filled, {}))}
        inputs = filled.inputs
        job = self._job(filled, inputs.known)
        refusals, notes = self._refusals(job, new_artifacts=inputs.new)
        found: dict[str, Any] = {"errors": [], "refusals": refusals, "notes": [*self._platform_notes(), *notes]}
        answer = found | {"machine_check": self._machine_check(job)} | self._equivalents(filled)
        if body.get("is_start"):
            answer |= {"location": self.location.name, "request": self._job(filled, inputs.ids)}
            answer |= {"before": inputs.requests(self._schema_titles())}
        return answer

    def _read_form(self, body: Mapping[str, Any]) -> tuple[_Filled, form.Details]:
        """Read a form; what is wrong with it is left out, and in the details."""
        find = partial(self.pipeline_jobs.metadata.find_artifact, self.location)
        parent = artifact_parent(self.location.project, self.location.region)
        values, of_parameters = form.read_parameters(self.source, _object(body, "parameters"))
        inputs, of_artifacts = artifacts.read(self.source.pipeline, _object(body, "artifacts"), find, parent)
        settings, of_settings = request.read_settings(body)
        filled = _Filled(values=values, inputs=inputs, settings=settings)
        return filled, [*of_parameters, *of_artifacts, *of_settings]

    def _job(self, filled: _Filled, ids: Mapping[str, str]) -> dict[str, Any]:
        return request.pipeline_job(self.source, filled.values, ids, filled.settings)

    def _schema_titles(self) -> dict[str, str]:
        return {name: each.schema_title for name, each in self.source.pipeline.root.input_artifacts.items()}

    def _equivalents(self, filled: _Filled) -> dict[str, str]:
        titles = self._schema_titles()
        same = Equivalents(
            source=self.source,
            values=filled.values,
            files={name: (titles[name], uri) for name, uri in filled.inputs.uris.items()},
            settings=filled.settings,
            ids=filled.inputs.known,
            region=self.location.region,
            work_dir=self.store.folder.parent,
        )
        return {"command": same.command, "program": same.program, "no_program": same.obstacle}

    def _refusals(self, job: dict[str, Any], **options: Any) -> tuple[list[str], list[str]]:
        """Return why the run cannot start here, and what differs from the service, one line each."""
        found = platforms.refusals(self.source.pipeline.platforms)
        try:
            return found, self.pipeline_jobs.check(self.location, job, **options)
        except ApiError as error:
            return found + ([each["message"] for each in error.details] or [str(error)]), []

    def _platform_notes(self) -> list[str]:
        names = platforms.without_refusal(self.source.pipeline.platforms)
        return [_NO_FIELD.format(names=", ".join(names))] if names else []

    def _steps(self) -> list[str]:
        """Return the names of the steps, each dag's once."""
        pipeline = self.source.pipeline
        return [
            task.display_name or task.name
            for component in pipeline.reachable
            for task in (component.dag.tasks.values() if component.dag else ())
            if task.component in pipeline.components and not pipeline.components[task.component].dag
        ]

    def _machine_check(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return what `python -m accelerators check` finds for these values in this region."""
        try:
            seen = examine_pipeline(job, region=self.location.region, catalogue=None, today=None)
        except UserError as error:
            return {"findings": [], "notes": [f"not checked: {error}"]}
        found = sorted(seen.findings, key=lambda each: each.severity)
        return {"findings": [asdict(each) for each in found], "notes": seen.notes}


def _object(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a part of the form.

    Raises:
        ApiError: It is not an object.
    """
    value = body.get(name) or {}
    if not isinstance(value, dict):
        raise wrong([{"field": name, "message": f"expected an object, found {type(value).__name__}"}])
    return value
