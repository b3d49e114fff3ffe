"""The methods of endpoints, for a server and for the endpoint of a run."""

from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from localvertex.serve.api.call import Call
from localvertex.serve.api.operations import Operations
from localvertex.serve.endpoints.deployments import Deployments
from localvertex.serve.endpoints.endpoints import Endpoints
from localvertex.serve.endpoints.predictions import Predictions
from localvertex.serve.endpoints.records import Records

Method = Callable[[Call], dict[str, Any] | Response]


def methods(records: Records, operations: Operations, deployments: Deployments) -> dict[str, tuple[str, str, Method]]:
    """Return the methods of the collection `endpoints`: HTTP method, path after the collection's, implementation."""
    endpoints, predictions = Endpoints(records, operations, deployments), Predictions(records, deployments)
    return {
        "create": ("POST", "", endpoints.create),
        "get": ("GET", "/{id:id}", endpoints.get),
        "list": ("GET", "", endpoints.list_all),
        "patch": ("PATCH", "/{id:id}", endpoints.patch),
        "delete": ("DELETE", "/{id:id}", endpoints.delete),
        "deployModel": ("POST", "/{id:id}:deployModel", endpoints.deploy),
        "undeployModel": ("POST", "/{id:id}:undeployModel", endpoints.undeploy),
        "mutateDeployedModel": ("POST", "/{id:id}:mutateDeployedModel", endpoints.mutate_deployed_model),
        "predict": ("POST", "/{id:id}:predict", predictions.predict),
        "rawPredict": ("POST", "/{id:id}:rawPredict", predictions.raw_predict),
    }
