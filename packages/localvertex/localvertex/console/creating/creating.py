"""The local routes of the form: what the server is, the compiled files, and the checks of a run before it starts."""

from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import did_you_mean, quote
from localvertex.api.pipeline_jobs.pipeline_jobs import PipelineJobs
from localvertex.api.rest.call import Location
from localvertex.console.creating import source
from localvertex.console.creating.checks import Checks, wrong
from localvertex.console.local_route import LocalCall, local_route
from localvertex.machines.catalogue.catalogue import load_catalogue

_PROJECT, _REGION = "local-project", "us-central1"
"""The location of the page's requests; the registry and the runs belong to the work folder."""


class Creating:
    """Answers what the form asks; a run is started by Vertex AI's own request.

    Args:
        pipeline_jobs: The service that checks and starts runs.
    """

    def __init__(self, pipeline_jobs: PipelineJobs) -> None:
        self._pipeline_jobs, self._work_dir = pipeline_jobs, pipeline_jobs.work_dir

    @local_route("GET", "/local/server")
    def server(self, call: LocalCall) -> JsonObject:
        """Describe the server."""
        return {"work_dir": str(self._work_dir.absolute()), "regions": _regions()}

    @local_route("GET", "/local/files")
    def files(self, call: LocalCall) -> JsonObject:
        """List the compiled files of the folder in which the server was started."""
        found = source.compiled_files().items()
        files = [{"path": path, "bytes": stat.st_size, "seconds": stat.st_mtime} for path, stat in found]
        return {"folder": source.short(source.FOLDER), "files": files}

    @local_route("POST", "/local/check")
    def check(self, call: LocalCall) -> JsonObject:
        """Describe a pipeline; with `parameters`, check a whole form.

        Raises:
            ApiError: Fields of the form are wrong, each named in the details.
            UserError: It is not a compiled pipeline.
        """
        found = source.read(call.body, self._work_dir)
        checks = Checks(
            source=found,
            location=Location(project=_PROJECT, region=_region(call.body.get("region"), found.region)),
            pipeline_jobs=self._pipeline_jobs,
        )
        return checks.of_form(call.body) if "parameters" in call.body else checks.overview()


def _region(given: Any, earlier: str) -> str:
    """Return the region of a request, or else of the earlier run, which may be any text.

    Raises:
        ApiError: The catalogue does not have the region of the request.
    """
    regions = _regions()
    if not given:
        return earlier if earlier in regions else _REGION
    if given not in regions:
        message = f"found {quote(given)}, which is not a region with training{did_you_mean(str(given), regions)}"
        raise wrong([{"field": "region", "message": message}])
    return str(given)


def _regions() -> list[str]:
    """Return the regions that have custom training."""
    return sorted({_REGION, *load_catalogue().training_regions})
