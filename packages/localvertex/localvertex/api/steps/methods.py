"""The collections that steps may call, as `localvertex serve` and the endpoint of a run have them."""

from collections.abc import Callable, Mapping

from localvertex._base.json_object import JsonObject
from localvertex.api.endpoints.deployments import Deployments
from localvertex.api.endpoints.endpoints import Endpoints
from localvertex.api.endpoints.predictions import Predictions
from localvertex.api.endpoints.records import EndpointRecords
from localvertex.api.models.evaluations import Evaluations
from localvertex.api.models.models import Models
from localvertex.api.rest.call import Call
from localvertex.api.rest.store import Store
from localvertex.values.buckets import Buckets

Method = Callable[[Call], JsonObject]

Methods = Mapping[str, tuple[str, str, Method]]
"""Methods of a collection: HTTP method, path after the collection's, implementation."""


class StepApi:
    """The models and endpoints of a work folder.

    Args:
        store: The records of the API.
        deployments: The processes of deployed models, which end with the collections.
        buckets: The folders of the buckets with the files of models.
    """

    def __init__(self, store: Store, deployments: Deployments, buckets: Buckets) -> None:
        self._deployments = deployments
        self.models, self._evaluations = Models(store, buckets), Evaluations(store)
        records = EndpointRecords(store.folder.parent)
        self.endpoints = Endpoints(records, deployments)
        self.predictions = Predictions(records, deployments)

    @property
    def collections(self) -> dict[str, Methods]:
        """The methods of each collection."""
        models, endpoints = self.models, self.endpoints
        evaluations, of_model = self._evaluations, "/{model:version}/evaluations"
        return {
            "models": {
                "upload": ("POST", ":upload", models.upload),
                "get": ("GET", "/{id:version}", models.get),
                "list": ("GET", "", models.list_all),
                "listVersions": ("GET", "/{id:version}:listVersions", models.list_versions),
                "patch": ("PATCH", "/{id:version}", models.patch),
                "mergeVersionAliases": ("POST", "/{id:version}:mergeVersionAliases", models.merge_version_aliases),
                "delete": ("DELETE", "/{id:id}", models.delete),
                "deleteVersion": ("DELETE", "/{id:version}:deleteVersion", models.delete_version),
                "evaluations.import": ("POST", f"{of_model}:import", evaluations.import_one),
                "evaluations.get": ("GET", f"{of_model}/{{id:id}}", evaluations.get),
                "evaluations.list": ("GET", of_model, evaluations.list_all),
            },
            "endpoints": {
                "create": ("POST", "", endpoints.create),
                "get": ("GET", "/{id:id}", endpoints.get),
                "list": ("GET", "", endpoints.list_all),
                "patch": ("PATCH", "/{id:id}", endpoints.patch),
                "delete": ("DELETE", "/{id:id}", endpoints.delete),
                "deployModel": ("POST", "/{id:id}:deployModel", endpoints.deploy),
                "undeployModel": ("POST", "/{id:id}:undeployModel", endpoints.undeploy),
                "predict": ("POST", "/{id:id}:predict", self.predictions.predict),
            },
        }

    def close(self) -> None:
        """Stop everything that runs."""
        self._deployments.close()
