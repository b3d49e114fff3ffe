"""What the step `train` does with its inputs: it trains over its candidates, and shows the journey."""

import json
import pathlib
import signal
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from components.train import journey as journeys
from components.train.custom_jobs import CustomJobs, Job
from components.train.failover import Failover, Request, Stopped
from components.train.fallbacks import Fallbacks, candidates as candidates_of
from localvertex._base.step_endpoint import is_local_step
from localvertex._base.userinput.cli import one_line
from trainer.command_line import report_errors as report_errors  # a component imports it from here
from trainer.settings import from_values

_POLL_SECONDS, _LOCAL_POLL_SECONDS = 20.0, 0.25


def train(
    *,
    journey: str,
    machines: MutableMapping[str, Any],
    gcp_resources: str,
    is_finished: bool,
    worker_pool_specs: list[dict[str, Any]],
    candidates: list[dict[str, Any]],
    region: str,
    pipeline_root: str,
    base_output_directory: str,
    settings: Mapping[str, Any],
    **values: Any,
) -> None:
    """Train a run over its candidates.

    Args:
        journey: Path of the HTML file to write.
        machines: Receives a line per job.
        gcp_resources: Path of the file that names the present job.
        is_finished: Whether there is nothing to train.
        worker_pool_specs: Worker pools on the first candidate.
        candidates: What `overlaid` returns.
        region: Region of candidates that name none.
        pipeline_root: Folder of the pipeline.
        base_output_directory: Folder of the run.
        settings: Fields of `Machines` and `Fallbacks` that are fixed for the project.
        **values: Fields of `Request`.

    Raises:
        UserError: A value is wrong, or the service refuses a call.
        TrainingError: The training failed, or no candidate has machines.
    """
    legs = journeys.Journey(base_output_directory, values["task"])

    def show(shown: Sequence[journeys.Leg]) -> None:
        journeys.write_page(journey, values["run_id"], shown)
        machines.update({f"job {number}": leg.summary for number, leg in enumerate(shown, 1) if leg.why})

    def announce(text: str, job: Job | None) -> None:
        print(one_line(text), flush=True)
        if job is not None:
            address = f"https://{job.region}-aiplatform.googleapis.com/v1/{job.name}"
            resource = {"resourceType": "CustomJob", "resourceUri": address}
            pathlib.Path(gcp_resources).write_text(json.dumps({"resources": [resource]}), encoding="utf-8")
        show(legs.own)

    # Outputs that a finished run has as well.
    pathlib.Path(gcp_resources).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(gcp_resources).write_text("{}", encoding="utf-8")
    show(legs.legs)
    if is_finished:
        print("the run is finished already")
        return
    container = worker_pool_specs[0]["container_spec"]
    request = Request(
        **values,
        base_output_directory=base_output_directory,
        image=container["image_uri"],
        command=container["command"],
        args=container["args"],
        env={each["name"]: each["value"] for each in container.get("env", [])},
        servers=worker_pool_specs[2:],
    )
    failover = Failover(
        request,
        candidates_of(candidates, settings, region=region),
        from_values(Fallbacks, settings),
        jobs=CustomJobs(pipeline_root),
        journey=legs,
        poll_seconds=_LOCAL_POLL_SECONDS if is_local_step() else _POLL_SECONDS,
        announce=announce,
    )
    _stop_on_signals()
    try:
        failover.run()
    except Stopped:
        print("stopped: the training job is cancelled")
        sys.exit(journeys.TERMINATED)
    finally:
        show(legs.own)


def _stop_on_signals() -> None:
    """Let a SIGTERM, with which Vertex AI cancels a step, cancel the job first; a second one changes nothing."""

    def stop(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Stopped

    signal.signal(signal.SIGTERM, stop)
