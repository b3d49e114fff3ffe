"""Writes the table of calls into docs/serve.md: `python -m localvertex_tests.api.rest.calls`.

Call each method of Vertex AI that Google's generated clients can send.
"""

import tempfile
import textwrap
from collections import defaultdict
from pathlib import Path

from localvertex.api.rest.known_methods import KnownMethod, known_methods
from vertex_testing.server import Server

PAGE = Path(__file__).parents[4] / "docs" / "serve.md"

_START, _END = "<!-- calls: written by tests/localvertex_tests/api/rest/calls.py -->\n\n", "<!-- end of calls -->\n"

_NO_LRO = "done when the request returns"

DIFFERS = {
    "PipelineService.CreatePipelineJob": "runs on this machine",
    "PipelineService.DeletePipelineJob": _NO_LRO,
    "PipelineService.GetPipelineJob": "the default service account has the id of the project, not its number",
    "EndpointService.CreateEndpoint": _NO_LRO,
    "EndpointService.DeleteEndpoint": _NO_LRO,
    "EndpointService.DeployModel": f"one process of this machine; {_NO_LRO}",
    "EndpointService.UndeployModel": _NO_LRO,
    "PredictionService.Predict": "of endpoints only, not of Google's own models",
    "JobService.CreateBatchPredictionJob": "runs on this machine, for JSON Lines in buckets",
    "JobService.CreateCustomJob": "runs on this machine",
    "JobService.CreateHyperparameterTuningJob": "runs on this machine",
    "JobService.DeleteBatchPredictionJob": _NO_LRO,
    "JobService.DeleteCustomJob": _NO_LRO,
    "JobService.DeleteHyperparameterTuningJob": _NO_LRO,
    "PipelineService.CreateTrainingPipeline": "runs on this machine, for custom training without a managed dataset",
    "PipelineService.DeleteTrainingPipeline": _NO_LRO,
    "MetadataService.DeleteArtifact": _NO_LRO,
    "MetadataService.DeleteContext": _NO_LRO,
    "MetadataService.DeleteExecution": _NO_LRO,
    "ModelService.UploadModel": f"{_NO_LRO}; `gs://` files are not copied",
    "ModelService.ListModels": "the models of the work folder, in every project and region",
    "ModelService.DeleteModel": _NO_LRO,
    "ModelService.DeleteModelVersion": _NO_LRO,
    "ScheduleService.DeleteSchedule": _NO_LRO,
    "TensorboardService.BatchReadTensorboardTimeSeriesData": "all points, not a sample",
    "TensorboardService.CreateTensorboard": _NO_LRO,
    "TensorboardService.DeleteTensorboard": _NO_LRO,
    "TensorboardService.DeleteTensorboardExperiment": _NO_LRO,
    "TensorboardService.DeleteTensorboardRun": _NO_LRO,
    "TensorboardService.DeleteTensorboardTimeSeries": _NO_LRO,
}
"""How methods differ from the service's; other served methods work as there."""


def is_served(server: Server, method: KnownMethod) -> bool:
    """Send a request for resources that do not exist, and return whether the server has the method."""
    # A body that is not an object is refused before anything is done.
    answer = server.request(method.http_method, method.example, json=[])
    if answer.status_code == 501:
        error = answer.json()["error"]
        assert (error["code"], error["status"]) == (501, "UNIMPLEMENTED")
        assert method.name in error["message"]
        return False
    assert answer.status_code in (400, 404), (method, answer.text)
    return True


def table(server: Server) -> str:
    """Build the lists from the responses of a server."""
    served = {each.name for each in known_methods() if is_served(server, each)}
    differing = defaultdict(list)
    for name, how in DIFFERS.items():
        differing[how].append(name)
    assert set(DIFFERS) <= served
    return (
        "Different from the service:\n\n"
        + "".join(_item(how, names) for how, names in sorted(differing.items()))
        + "\nAs on the service:\n\n"
        + _by_service(served - set(DIFFERS))
        + "\nAll other methods of Vertex AI are refused with 501 UNIMPLEMENTED.\n\n"
    )


def _by_service(names: set[str]) -> str:
    """Return an item per service with its methods."""
    methods = defaultdict(list)
    for service, _, method in (name.partition(".") for name in sorted(names)):
        methods[service].append(method)
    return "".join(_item(service, found) for service, found in methods.items())


def _item(title: str, names: list[str]) -> str:
    text = f"- {title}: {', '.join(sorted(names))}"
    return textwrap.fill(text, 120, subsequent_indent="  ", break_on_hyphens=False) + "\n"


def page_with(new: str) -> str:
    """Return the page with this table."""
    before, _, rest = PAGE.read_text().partition(_START)
    return f"{before}{_START}{new}{_END}{rest.partition(_END)[2]}"


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder) / "runs") as server:
        PAGE.write_text(page_with(table(server)))


if __name__ == "__main__":
    main()
