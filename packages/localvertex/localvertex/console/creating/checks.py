"""The checks of a run before it is started: the file, the form, and the machines that it requests."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from localvertex._base.compiled import platforms
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.api.pipeline_jobs.pipeline_jobs import PipelineJobs
from localvertex.api.rest.call import Location
from localvertex.api.rest.errors import ApiError, Status
from localvertex.console.creating import form, request
from localvertex.console.creating.form import MAX_TEXT
from localvertex.console.creating.source import Source, short
from localvertex.machines.pipeline.check import examine_pipeline
from localvertex.runner.options import Options
from localvertex.show.view.groups import split_description

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
class Checks:
    """The checks of one pipeline in one location."""

    source: Source
    location: Location
    pipeline_jobs: PipelineJobs

    def overview(self) -> JsonObject:
        """Return what the file is, its form, and what is known before the form is filled."""
        source, pipeline = self.source, self.source.pipeline
        job = request.pipeline_job(source, pipeline.job.parameters, request.Settings())
        work_dir = short(self.pipeline_jobs.work_dir)
        refusals, _ = self._refusals(job, only_pipeline=True)
        description, groups = split_description(pipeline.description[:MAX_TEXT], pipeline.root.input_parameters)
        return {
            "path": source.path,
            "content": source.content,
            "pipeline": pipeline.name,
            "description": description,
            "groups": groups,
            "region": self.location.region,
            "parameters": form.parameters(source),
            "settings": request.settings_of(source),
            "input_artifacts": [name for name, each in pipeline.root.input_artifacts.items() if not each.is_optional],
            "work_dir": "" if work_dir == str(Options().work_dir) else work_dir,
            "warnings": [*source.warnings],
            "refusals": refusals,
            "notes": self._platform_notes(),
            "machine_check": self._machine_check(job),
        }

    def of_form(self, body: Mapping[str, Any]) -> JsonObject:
        """Check a whole form: return what is wrong with it as `errors`, or else what depends on the values.

        Raises:
            ApiError: With `is_start`, if fields are wrong; the details name each.
        """
        values, of_parameters = form.read_parameters(self.source, _object(body, "parameters"))
        settings, of_settings = request.read_settings(body)
        job = request.pipeline_job(self.source, values, settings)
        if details := [*of_parameters, *of_settings]:
            if body.get("is_start"):
                raise wrong(details)
            # Errors in other fields do not justify showing the machines of another region.
            return {"errors": details, "machine_check": self._machine_check(job)}
        refusals, notes = self._refusals(job)
        return {
            "errors": [],
            "refusals": refusals,
            "notes": [*self._platform_notes(), *notes],
            "machine_check": self._machine_check(job),
            **({"location": self.location.name, "request": job} if body.get("is_start") else {}),
        }

    def _refusals(self, job: JsonObject, *, only_pipeline: bool = False) -> tuple[list[str], list[str]]:
        """Return why the run cannot start here, and what differs from the service, one line each."""
        found = platforms.refusals(self.source.pipeline.platforms)
        try:
            return found, self.pipeline_jobs.check(self.location, job, only_pipeline=only_pipeline)
        except ApiError as error:
            return found + ([each["message"] for each in error.details] or [str(error)]), []

    def _platform_notes(self) -> list[str]:
        document = self.source.pipeline.platforms
        names = [] if platforms.refusals(document) else platforms.harmless(document)
        return [_NO_FIELD.format(names=", ".join(names))] if names else []

    def _machine_check(self, job: JsonObject) -> JsonObject:
        """Return what `python -m localvertex machines check` finds for these values in this region."""
        try:
            seen = examine_pipeline(job, region=self.location.region, today=None)
        except UserError as error:
            return {"findings": [], "notes": [f"not checked: {error}"]}
        found = sorted(seen.findings, key=lambda each: each.severity)
        return {"findings": [asdict(each) for each in found], "notes": seen.notes}


def _object(body: Mapping[str, Any], name: str) -> JsonObject:
    """Return a part of the form.

    Raises:
        ApiError: It is not an object.
    """
    value = body.get(name) or {}
    if not isinstance(value, dict):
        raise wrong([{"field": name, "message": f"expected an object, found {type(value).__name__}"}])
    return value
