"""The one place that makes clients of Vertex AI, for steps and for commands, and that calls them from steps.

A step of a local run reaches the registry of its work folder as it would reach Vertex AI: the file that an
environment variable names has address and token. Without that file the step fails, and never calls Google.
"""

import logging
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from exact_resume.files import storage
from localvertex._base import step_endpoint
from localvertex._base.step_endpoint import StepEndpoint
from localvertex._base.userinput.errors import UserError
from trainer.command_line import TrainingError
from trainer.google_errors import GoogleError, google_error, google_errors

T = TypeVar("T")

LOG_IN = "gcloud auth application-default login"
"""The command that gives programs the user's credentials."""

_LOCAL_PROJECT = "local-project"
"""Any id will do: the local registry belongs to a work folder."""

_SECONDS = 60.0
"""Limit for one answer; the clients' own limit of 5 s is too short for a service that is starting."""

_PAUSES_SECONDS = (1.0, 4.0, 16.0)
"""Pauses between the attempts of a call."""

_ADVICE = {
    401: "; docs/cloud.md has the set-up",
    403: "; give the service account of the pipeline the role roles/aiplatform.user, see docs/cloud.md",
    404: "",
    429: "; run the pipeline again later, or request more quota",
}
"""Advice by status code."""

_PROJECT_VARIABLES = ("GOOGLE_CLOUD_PROJECT", "CLOUD_ML_PROJECT_ID")
"""The project of a step; its credentials name the service's own. In the order of google-cloud-aiplatform 1.165."""


class NotFoundError(UserError):
    """The service has no resource of this name."""


def parent(region: str, pipeline_root: str) -> str:
    """Return `projects/PROJECT/locations/REGION`, in which the step's resources are.

    Raises:
        UserError: There is no endpoint, there are no credentials, or they name no project.
    """
    if _endpoint(pipeline_root):
        return f"projects/{_LOCAL_PROJECT}/locations/{region}"
    named = next(filter(None, map(os.environ.get, _PROJECT_VARIABLES)), None)
    project = named or google_credentials()[1]
    if not project:
        raise UserError(f"the credentials name no project; set {_PROJECT_VARIABLES[0]} to the id of your project")
    return f"projects/{project}/locations/{region}"


def make(name: str, *, url: str, credentials: Any) -> Any:
    """Return a generated client of google-cloud-aiplatform.

    Args:
        name: Its class, e.g. `ModelServiceClient`.
        url: The service's, or a local one's.
        credentials: Credentials of google-auth.
    """
    # Google's packages log deprecations and attempts to find a metadata server, which a user cannot act on.
    logging.getLogger("google").addHandler(logging.NullHandler())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from google.cloud import aiplatform_v1

        options = {"api_endpoint": url}
        return getattr(aiplatform_v1, name)(transport="rest", credentials=credentials, client_options=options)


def call(method: Callable[..., Any], request: Any, *, what: str, is_repeatable: bool = True) -> Any:
    """Call a method of a client; return its answer, of a list method all elements.

    Args:
        method: The method.
        request: Its request, as a message or a dict.
        what: Beginning of an error's message, e.g. `the models cannot be listed`.
        is_repeatable: Whether a second call does no harm after the answer to the first one was lost.

    Raises:
        NotFoundError: The service has no such resource.
        UserError: The service refuses the call.
        TrainingError: It is not available, or a quota is exhausted, even after some pauses.
    """

    def once() -> Any:
        answer = method(request=request, timeout=_SECONDS, retry=None)
        return list(answer) if hasattr(answer, "pages") else answer

    return _retry(once, what=what, is_repeatable=is_repeatable)


def wait_for(operation: Any, *, what: str, seconds: float) -> Any:
    """Wait for a long-running operation and return its response; see `call`.

    Raises:
        TrainingError: It failed, or takes longer.
    """
    from concurrent.futures import TimeoutError as Late

    try:
        return _retry(partial(operation.result, timeout=seconds), what=what, is_repeatable=True)
    except Late:
        name = operation.operation.name
        raise TrainingError(f"{what}: it takes longer than {seconds:g} s; check the operation {name}") from None


def _for_step(name: str, region: str, pipeline_root: str) -> Any:
    """Return a client for a step.

    Raises:
        UserError: The step of a local run has no endpoint, or there are no credentials.
    """
    endpoint = _endpoint(pipeline_root)
    if endpoint:
        return make(name, url=endpoint.address, credentials=step_endpoint.credentials(endpoint))
    return make(name, url=f"https://{region}-aiplatform.googleapis.com", credentials=google_credentials()[0])


models = partial(_for_step, "ModelServiceClient")
endpoints = partial(_for_step, "EndpointServiceClient")
predictions = partial(_for_step, "PredictionServiceClient")
jobs = partial(_for_step, "JobServiceClient")
"""Clients for a step, from its region and its pipeline root."""


def _endpoint(pipeline_root: str) -> StepEndpoint | None:
    """Return the endpoint of a local run, None for Google's.

    Raises:
        UserError: The run is local and has none: it must not call Google.
    """
    found = step_endpoint.find()
    if found is None and (not storage.is_object_store(pipeline_root) or step_endpoint.is_local_step()):
        raise UserError(
            f"this step of a local run has no registry: {step_endpoint.VARIABLE} is not set. Run the pipeline with "
            "`python -m localvertex run`, or give a pipeline_root on gs:// to use Vertex AI"
        )
    return found


def google_credentials() -> tuple[Any, str | None]:
    """Return the default credentials of Google Cloud, and the project that they name.

    Raises:
        UserError: No credentials were found.
    """
    import google.auth

    hint = f"run `{LOG_IN}`, or see docs/cloud.md"
    with google_errors(lambda error: UserError(f"no credentials for Google Cloud: {hint} ({error.message})")):
        return google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])


def _retry(once: Callable[[], T], *, what: str, is_repeatable: bool) -> T:
    def explain(error: GoogleError) -> Exception:
        kind = NotFoundError if error.code == 404 else TrainingError if error.is_temporary else UserError
        later = "; run the pipeline again later" if error.is_temporary else ""
        return kind(f"{what}: {error.line()}{_ADVICE.get(error.code, later)}")

    with google_errors(explain):
        for pause in _PAUSES_SECONDS:
            try:
                return once()
            except Exception as error:
                found = google_error(error)
                if found is None or not (found.code == 429 or (is_repeatable and found.is_temporary)):
                    raise
            time.sleep(pause)
        return once()
